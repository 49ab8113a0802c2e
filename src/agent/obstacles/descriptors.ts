import { readlink, stat } from 'node:fs/promises'
import { answersByItself } from '../discover/mountinfo.ts'
import { namesIn, type ProcFs, readIfThere, unlessGone } from '../discover/process.ts'
import type { ObstacleKind } from './obstacle.ts'

export interface Finding {
  readonly kind: ObstacleKind
  readonly detail: string
}

/** What CRIU can save of files without a path. Others end a dump. */
const savedAnonymous = new Set([
  ...['eventfd', 'eventpoll', 'timerfd', 'signalfd', 'pidfd', 'inotify', 'fanotify'],
  // Of CRIU's own, in a process that it has just let go.
  'criu',
])

/** CRIU keeps deleted files of up to this size; see the limit in driver/criu.ts. */
export const largestDeleted = 64 * 1024 * 1024

/** How much of a container is looked at; a tenant could have any number of everything. */
export interface Budget {
  descriptors: number
  /** Types of its file systems by the numbers of their mounts. */
  readonly types: ReadonlyMap<string, string>
}

const atOnce = 32
/** Of one kind, of one process: who reads it needs no more. */
const mostFindings = 16

/** Looks at what a process has open, by the names that the kernel gives it, and at the files behind them. */
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
  const name = await unlessGone(readlink(path))
  if (name === undefined) return undefined
  const anonymous = /^anon_inode:\[?([^\]]*)\]?$/.exec(name)?.[1]
  if (anonymous !== undefined) return inAnonymous(anonymous)
  // Pipes, sockets, memfds and pidfds have no path; what they are is said by their names.
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

/** Whatever is open of /proc is opened again by its path, in which numbers are those of other processes by then. */
const isOfProc = (name: string): boolean => name === '/proc' || name.startsWith('/proc/')

/** Directories that a process is in, which are open like any other. */
export async function inDirectories(fs: ProcFs, pid: number): Promise<Finding[]> {
  const links = await Promise.all(
    ['cwd', 'root'].map(name => unlessGone(readlink(`${fs.proc}/${pid}/${name}`))),
  )
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

/** null, zero, full, random and urandom are the same everywhere. */
const harmlessDevices = new Set([3, 5, 7, 8, 9])

function inDevice(name: string, device: number, isBlock: boolean): Finding | undefined {
  const { major, minor } = numbersOf(device)
  const detail = `${name}, ${major}:${minor}`
  if (isBlock) return { kind: 'Device', detail }
  if (major === memoryDevices && harmlessDevices.has(minor)) return undefined
  const isTerminal = (major >= firstPts && major <= lastPts) || major === 4 || major === 5
  return { kind: isTerminal ? 'Terminal' : 'Device', detail }
}

/** As the kernel packs them for programs: 12 and 20 bits, in four pieces. */
export function numbersOf(device: number): { readonly major: number; readonly minor: number } {
  const wide = BigInt(device)
  const major = ((wide >> 8n) & 0xfffn) | ((wide >> 32n) & 0xfffff000n)
  const minor = (wide & 0xffn) | ((wide >> 12n) & 0xffffff00n)
  return { major: Number(major), minor: Number(minor) }
}
