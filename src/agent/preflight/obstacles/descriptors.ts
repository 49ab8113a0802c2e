import { stat } from 'node:fs/promises'
import { answersByItself } from '../../container/mountinfo.ts'
import { linkIfThere, namesIn, type ProcFs, readIfThere, unlessGone } from '../../container/process.ts'
import type { ObstacleKind } from './obstacle.ts'

export interface Finding {
  readonly kind: ObstacleKind
  readonly detail: string
}

/** Anonymous files that CRIU can save. All others fail the dump. */
const savedAnonymous = new Set([
  ...['eventfd', 'eventpoll', 'timerfd', 'signalfd', 'pidfd', 'inotify', 'fanotify'],
  // CRIU's own, in a process that it has just released.
  'criu',
])

/** CRIU keeps deleted files up to this size; see the limit in driver/criu.ts. */
export const largestDeleted = 64 * 1024 * 1024

/** Limits the search in a container: a tenant could have any number of open files. */
export interface Budget {
  descriptors: number
  /** Filesystem types by mount id. */
  readonly types: ReadonlyMap<string, string>
}

const atOnce = 32
/** Findings of one kind in one process: a reader needs no more. */
const mostFindings = 16

/** Checks the open files of a process, by the names that the kernel reports and by the files themselves. */
export async function inDescriptors(fs: ProcFs, pid: number, budget: Budget): Promise<Finding[]> {
  const base = `${fs.proc}/${pid}`
  const found: Finding[] = []
  let names: string[] = []
  const look = async () => {
    const findings = await Promise.all(names.map(name => inDescriptor(base, name, budget)))
    names = []
    for (const it of findings)
      if (it !== undefined && found.filter(({ kind }) => kind === it.kind).length < mostFindings)
        found.push(it)
  }
  for await (const name of namesIn(`${base}/fd`)) {
    if (budget.descriptors <= 0) break
    budget.descriptors -= 1
    names.push(name)
    if (names.length === atOnce) await look()
  }
  await look()
  return found
}

async function inDescriptor(base: string, fd: string, { types }: Budget): Promise<Finding | undefined> {
  const path = `${base}/fd/${fd}`
  const name = await linkIfThere(base, `fd/${fd}`)
  if (name === undefined) return undefined
  const anonymous = /^anon_inode:\[?([^\]]*)\]?$/.exec(name)?.[1]
  if (anonymous !== undefined) return inAnonymous(anonymous)
  // Pipes, sockets, memfds and pidfds have no path; their names show their kind.
  if (!name.startsWith('/') || name.startsWith('/memfd:')) return undefined
  if (isOfProc(name)) return { kind: 'ProcFile', detail: name }
  const mount = /^mnt_id:\s*(\d+)$/m.exec((await readIfThere(`${base}/fdinfo/${fd}`)) ?? '')?.[1]
  if (mount === undefined || !answersByItself(types.get(mount) ?? '')) return undefined
  const about = await unlessGone(stat(path))
  if (about === undefined) return undefined
  if (about.isCharacterDevice() || about.isBlockDevice())
    return inDevice(name, about.rdev, about.isBlockDevice())
  if (!name.endsWith(' (deleted)') || !about.isFile()) return undefined
  const file = name.slice(0, -' (deleted)'.length)
  if (about.nlink > 0) return { kind: 'LinkedDeletedFile', detail: file }
  return about.size > largestDeleted
    ? { kind: 'LargeDeletedFile', detail: `${file}, ${about.size} bytes` }
    : undefined
}

/** A restore opens files of /proc by their path, in which the pids mean other processes by then. */
const isOfProc = (name: string): boolean => name === '/proc' || name.startsWith('/proc/')

/** Checks the working and root directories, which CRIU opens like files. */
export async function inDirectories(fs: ProcFs, pid: number): Promise<Finding[]> {
  const links = await Promise.all(['cwd', 'root'].map(name => linkIfThere(`${fs.proc}/${pid}`, name)))
  return links.flatMap(name =>
    name !== undefined && isOfProc(name) ? [{ kind: 'ProcFile', detail: name } as const] : [],
  )
}

function inAnonymous(name: string): Finding | undefined {
  if (name === 'io_uring') return { kind: 'IoUring', detail: name }
  return savedAnonymous.has(name) ? undefined : { kind: 'KernelObject', detail: name }
}

const memoryDevices = 1
const firstPts = 136
const lastPts = 143

/** null, zero, full, random and urandom are the same on every node. */
const harmlessDevices = new Set([3, 5, 7, 8, 9])

function inDevice(name: string, device: number, isBlock: boolean): Finding | undefined {
  const { major, minor } = numbersOf(device)
  const detail = `${name}, ${major}:${minor}`
  if (isBlock) return { kind: 'Device', detail }
  if (major === memoryDevices && harmlessDevices.has(minor)) return undefined
  const isTerminal = (major >= firstPts && major <= lastPts) || major === 4 || major === 5
  return { kind: isTerminal ? 'Terminal' : 'Device', detail }
}

/** Decodes the kernel's format of device numbers: 12 and 20 bits, in four pieces. */
export function numbersOf(device: number): { readonly major: number; readonly minor: number } {
  const wide = BigInt(device)
  const major = ((wide >> 8n) & 0xfffn) | ((wide >> 32n) & 0xfffff000n)
  const minor = (wide & 0xffn) | ((wide >> 12n) & 0xffffff00n)
  return { major: Number(major), minor: Number(minor) }
}
