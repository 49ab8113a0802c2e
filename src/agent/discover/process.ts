import { opendir, readdir, readFile, readlink } from 'node:fs/promises'
import { join } from 'node:path'
import { AgentError } from '../errors.ts'
import type { ProcessRef } from '../sentinel.ts'
import type { PodsDirectory } from './pods-directory.ts'

/** What /proc/PID/status says of a process, as far as it is needed here. */
export interface ProcessStatus {
  readonly state: string
  /** Its pid in each namespace, from the reader's to its own. */
  readonly nsPids: readonly number[]
  /** Pending signals of the thread and of the process, as bit sets (bit n-1 is signal n). */
  readonly pending: bigint
  readonly fields: ReadonlyMap<string, string>
}

/** Where processes are looked for. */
export interface ProcFs {
  readonly proc: string
  /** A process in the namespaces of the host. */
  readonly host: number
  /** Absent: where the kubelet that has made this process's container keeps it. */
  readonly pods?: PodsDirectory
}

/** As an agent with `hostPID` sees it. */
export const hostProcFs: ProcFs = Object.freeze({ proc: '/proc', host: 1 })

/** Where this process finds what lies on the host at a path; one below /proc is the same for both. */
export const onHost = (fs: ProcFs, path: string): string =>
  path.startsWith(`${fs.proc}/`) ? path : join(fs.proc, String(fs.host), 'root', path)

/** Field 22 of /proc/PID/stat; undefined when there is no such process. */
export async function startTimeOf(fs: ProcFs, pid: number): Promise<number | undefined> {
  const text = await readIfThere(`${fs.proc}/${pid}/stat`)
  return text === undefined ? undefined : parseStartTime(text)
}

/** The name in the second field may contain spaces and parentheses: what counts comes after its last one. */
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

/** White-space separated numbers. */
export function numbers(text: string | undefined): number[] {
  return (text ?? '')
    .split(/\s+/)
    .filter(word => /^\d+$/.test(word))
    .map(Number)
}

/** @throws AgentError ProcessGone when its pid is free or belongs to another process now. */
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

/** As `Promise.all`, but few of them at a time: what a tenant can have many of must not all be in memory at once. */
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

/** Names in a directory of which a tenant decides how many there are; what is gone has none. Not all are in memory at once. */
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
 * The process and all below it, parents first. Threads' children count. A tree that changes may be told in part.
 * @param most where there are more it is looked no further, and more are told.
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

/** What descriptors 0, 1 and 2 are, as readlink tells it: `pipe:[123]`, `/dev/null`. Closed ones are left out. */
export async function stdioOf(fs: ProcFs, pid: number): Promise<Partial<Record<'0' | '1' | '2', string>>> {
  const found: Partial<Record<'0' | '1' | '2', string>> = {}
  for (const fd of ['0', '1', '2'] as const) {
    const link = await unlessGone(readlink(`${fs.proc}/${pid}/fd/${fd}`))
    if (link !== undefined) found[fd] = link
  }
  return found
}

export async function allPids(fs: ProcFs): Promise<number[]> {
  return (await readdir(fs.proc)).filter(name => /^\d+$/.test(name)).map(Number)
}

/** ESRCH: the process ended between opening and reading. */
export function isGone(error: unknown): boolean {
  const { code } = error as NodeJS.ErrnoException
  return code === 'ENOENT' || code === 'ESRCH'
}

/** What there is to tell of a process or a file, or undefined when it has gone meanwhile. */
export async function unlessGone<T>(work: Promise<T>): Promise<T | undefined> {
  try {
    return await work
  } catch (error) {
    if (isGone(error)) return undefined
    throw error
  }
}

export const readIfThere = (path: string): Promise<string | undefined> => unlessGone(readFile(path, 'utf8'))

export const listIfThere = async (path: string): Promise<string[]> => (await unlessGone(readdir(path))) ?? []
