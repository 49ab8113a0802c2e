import { opendir, readdir, readFile, readlink } from 'node:fs/promises'
import { join } from 'node:path'
import { AgentError } from '../../api/agent-errors.ts'
import type { PodsDirectory } from './pods-directory.ts'

/** The fields of /proc/PID/status that the agent needs. */
export interface ProcessStatus {
  readonly state: string
  /** Its pid in each namespace, from the reader's to its own. */
  readonly nsPids: readonly number[]
  /** Pending signals of the thread and of the process, as bit sets (bit n-1 is signal n). */
  readonly pending: bigint
  readonly fields: ReadonlyMap<string, string>
}

/** Where to find processes. */
export interface ProcFs {
  readonly proc: string
  /** A process in the namespaces of the host. */
  readonly host: number
  /** The kubelet's directory of pods. Absent: found by the mounts of this process's container. */
  readonly pods?: PodsDirectory
}

/** Processes as an agent with `hostPID` sees them. */
export const hostProcFs: ProcFs = Object.freeze({ proc: '/proc', host: 1 })

/** Returns the path at which this process sees a file of the host. Paths below /proc are the same for both. */
export const onHost = (fs: ProcFs, path: string): string =>
  path.startsWith(`${fs.proc}/`) ? path : join(fs.proc, String(fs.host), 'root', path)

/** Returns field 22 of /proc/PID/stat; undefined if there is no such process. */
export async function startTimeOf(fs: ProcFs, pid: number): Promise<number | undefined> {
  const text = await readIfThere(`${fs.proc}/${pid}/stat`)
  return text === undefined ? undefined : parseStartTime(text)
}

/** Parses after the last parenthesis: the name in the second field may contain spaces and parentheses. */
export function parseStartTime(stat: string): number | undefined {
  const fields = stat
    .slice(stat.lastIndexOf(')') + 2)
    .trim()
    .split(' ')
  const start = Number(fields[19])
  return Number.isSafeInteger(start) && fields.length >= 20 ? start : undefined
}

export async function statusOf(fs: ProcFs, pid: number): Promise<ProcessStatus | undefined> {
  const text = await readIfThere(`${fs.proc}/${pid}/status`)
  return text === undefined ? undefined : parseStatus(text)
}

export function parseStatus(text: string): ProcessStatus {
  const fields = new Map<string, string>()
  for (const line of text.split('\n')) {
    const at = line.indexOf(':')
    if (at > 0) fields.set(line.slice(0, at), line.slice(at + 1).trim())
  }
  const bits = (name: string) => {
    const value = fields.get(name) ?? '0'
    return /^[0-9a-f]+$/i.test(value) ? BigInt(`0x${value}`) : 0n
  }
  return {
    state: fields.get('State')?.[0] ?? '?',
    nsPids: numbers(fields.get('NSpid')),
    pending: bits('SigPnd') | bits('ShdPnd'),
    fields,
  }
}

/** Returns the numbers of a white-space separated list. */
export function numbers(text: string | undefined): number[] {
  return (text ?? '')
    .split(/\s+/)
    .filter(word => /^\d+$/.test(word))
    .map(Number)
}

/** @throws AgentError ProcessGone when the pid is free or belongs to another process now. */
export async function assertSame(fs: ProcFs, process: ProcessRef): Promise<void> {
  if ((await startTimeOf(fs, process.pid)) !== process.start)
    throw new AgentError('ProcessGone', `pid ${process.pid}`)
}

export async function isSame(fs: ProcFs, process: ProcessRef): Promise<boolean> {
  return (await startTimeOf(fs, process.pid)) === process.start
}

/** @throws AgentError ProcessGone */
export async function refOf(fs: ProcFs, pid: number): Promise<ProcessRef> {
  const start = await startTimeOf(fs, pid)
  if (start === undefined) throw new AgentError('ProcessGone', `pid ${pid}`)
  return { pid, start }
}

/**
 * Like `Promise.all`, but for a few items at a time: a tenant may have many of them, and not all must be in memory at
 * once.
 */
export async function inBatches<T, R>(
  items: readonly T[],
  work: (item: T) => Promise<R>,
  size = 64,
): Promise<R[]> {
  const results: R[] = []
  for (let at = 0; at < items.length; at += size)
    results.push(...(await Promise.all(items.slice(at, at + size).map(work))))
  return results
}

/**
 * Yields the names in a directory; none if it is gone. A tenant decides how many there are, so not all are in memory at
 * once.
 */
export async function* namesIn(directory: string): AsyncGenerator<string> {
  const opened = await unlessGone(opendir(directory, { bufferSize: 256 }))
  if (opened === undefined) return
  try {
    for await (const { name } of opened) yield name
  } catch (error) {
    if (!isGone(error)) throw error
  }
}

/**
 * Returns the process and its descendants, parents first, including the children of threads. May miss processes of a
 * tree that changes.
 * @param most ends the search after more than so many; the result is longer than `most` then.
 */
export async function treeOf(fs: ProcFs, root: number, most = Number.POSITIVE_INFINITY): Promise<number[]> {
  const found = [root]
  for (const pid of found) {
    if (found.length > most) break
    for (const child of await childrenOf(fs, pid)) found.push(child)
  }
  return found
}

export async function childrenOf(fs: ProcFs, pid: number): Promise<number[]> {
  const threads = await listIfThere(`${fs.proc}/${pid}/task`)
  const lists = await inBatches(threads, thread => readIfThere(`${fs.proc}/${pid}/task/${thread}/children`))
  return lists.flatMap(list => numbers(list))
}

/**
 * Returns the targets of descriptors 0, 1 and 2 as readlink reports them: `pipe:[123]`, `/dev/null`. Omits closed ones.
 */
export async function stdioOf(fs: ProcFs, pid: number): Promise<Partial<Record<'0' | '1' | '2', string>>> {
  const found: Partial<Record<'0' | '1' | '2', string>> = {}
  for (const fd of ['0', '1', '2'] as const) {
    const link = await linkIfThere(`${fs.proc}/${pid}`, `fd/${fd}`)
    if (link !== undefined) found[fd] = link
  }
  return found
}

export async function allPids(fs: ProcFs): Promise<number[]> {
  return (await readdir(fs.proc)).filter(name => /^\d+$/.test(name)).map(Number)
}

/** ENOENT or ESRCH; the latter if the process ended between opening and reading. */
export function isGone(error: unknown): boolean {
  const { code } = error as NodeJS.ErrnoException
  return code === 'ENOENT' || code === 'ESRCH'
}

/** Returns the result, or undefined if the process or file has gone meanwhile. */
export async function unlessGone<T>(work: Promise<T>): Promise<T | undefined> {
  try {
    return await work
  } catch (error) {
    if (isGone(error)) return undefined
    throw error
  }
}

/**
 * Returns the target of a link below /proc/PID; undefined if the process or the link has gone meanwhile. The kernel says EACCES, as if it
 * hid the target, of a process that ends between its search for the link and its look at the process.
 * @param process its directory in /proc.
 * @param read reads a link; default: that of the system.
 */
export async function linkIfThere(
  process: string,
  name: string,
  read: (path: string) => Promise<string> = readlink,
): Promise<string | undefined> {
  try {
    return await unlessGone(read(`${process}/${name}`))
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'EACCES' && (await readIfThere(`${process}/stat`)) === undefined) return undefined
    throw error
  }
}

export const readIfThere = (path: string): Promise<string | undefined> => unlessGone(readFile(path, 'utf8'))

export const listIfThere = async (path: string): Promise<string[]> => (await unlessGone(readdir(path))) ?? []

/** A process, safe from pid reuse: `start` is field 22 of /proc/PID/stat, clock ticks since boot. */
export interface ProcessRef {
  readonly pid: number
  readonly start: number
}
