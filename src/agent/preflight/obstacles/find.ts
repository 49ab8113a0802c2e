import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { mountsOf } from '../../container/container.ts'
import {
  inBatches,
  linkIfThere,
  type ProcFs,
  readIfThere,
  statusOf,
  treeOf,
} from '../../container/process.ts'
import type { LocatedAppContainer, LocatedPod } from '../../criu/memory-driver.ts'
import { type Budget, type Finding, inDescriptors, inDirectories } from './descriptors.ts'
import type { Obstacle } from './obstacle.ts'

export interface FindOptions {
  readonly fs: ProcFs
  /** The node's programs, which include `inspect`. */
  readonly programs: string
  readonly signal?: AbortSignal
}

/**
 * Finds objects of a pod's saved containers that CRIU cannot save, without touching the processes. Skips processes that
 * end meanwhile, and misses objects opened later: then the dump fails, and the agent searches again.
 */
export async function findObstacles(pod: LocatedPod, options: FindOptions): Promise<Obstacle[]> {
  const found = await Promise.all(pod.containers.map(container => inContainer(container, options)))
  return found.flat()
}

async function inContainer({ app, name }: LocatedAppContainer, options: FindOptions): Promise<Obstacle[]> {
  if (app === undefined) return []
  const { fs } = options
  const tooMany = (what: string): Obstacle[] => [
    { kind: 'TooMany', container: name, pid: app.pid, detail: what },
  ]
  const pids = await treeOf(fs, app.pid, mostProcesses)
  if (pids.length > mostProcesses) return tooMany(`more than ${mostProcesses} processes`)
  const namespaces = await namespacesOf(fs, app.pid)
  const mounts = await mountsOf(fs, app.pid)
  const budget = { descriptors: mostDescriptors, types: new Map(mounts.map(({ id, type }) => [id, type])) }
  const found = await inBatches(
    pids,
    async pid => (await inProcess(fs, pid, namespaces, budget)).map(it => ({ ...it, pid })),
    processesAtOnce,
  )
  if (budget.descriptors <= 0) return tooMany(`more than ${mostDescriptors} open files`)
  const seen = await look(pids, options)
  const findings = [...found.flat(), ...parseLook(seen).map(({ pid = app.pid, ...it }) => ({ ...it, pid }))]
  return inBatches(findings, async ({ pid, kind, detail }) => {
    const program = (await readIfThere(`${fs.proc}/${pid}/comm`))?.trim() ?? '?'
    return { kind, container: name, pid, detail: `${program}: ${detail}` }
  })
}

/** Limits for one container. The search takes memory and time of the agent, which all pods of the node share. */
const mostProcesses = 4_096
const mostDescriptors = 50_000
const processesAtOnce = 4

async function inProcess(fs: ProcFs, pid: number, root: Namespaces, budget: Budget): Promise<Finding[]> {
  const [descriptors, directories, maps, own, status] = await Promise.all([
    inDescriptors(fs, pid, budget),
    inDirectories(fs, pid),
    readIfThere(`${fs.proc}/${pid}/maps`),
    namespacesOf(fs, pid),
    statusOf(fs, pid),
  ])
  const foreign = namespaceKinds.filter(kind => own[kind] !== undefined && own[kind] !== root[kind])
  const tracer = status?.fields.get('TracerPid') ?? '0'
  return [
    ...descriptors,
    ...directories,
    ...inMaps(maps ?? ''),
    ...foreign.map((kind): Finding => ({ kind: 'Namespace', detail: kind })),
    ...(tracer === '0' ? [] : [{ kind: 'Traced', detail: `traced by ${tracer}` } as const]),
  ]
}

/** Checks mappings, whose files may have no descriptor any more. */
export function inMaps(maps: string): Finding[] {
  const names = new Set<string>()
  for (const line of maps.split('\n')) {
    const name = /^\S+ \S+ \S+ \S+ \S+\s+(\/.*|anon_inode:.*)$/.exec(line)?.[1]
    if (name !== undefined) names.add(name)
  }
  return [...names].flatMap((name): Finding[] => {
    if (name.startsWith('/SYSV')) return [{ kind: 'SystemV', detail: `shared memory ${name.slice(5, 13)}` }]
    if (name.startsWith('anon_inode:[io_uring]')) return [{ kind: 'IoUring', detail: 'io_uring' }]
    const isDevice = name.startsWith('/dev/') && !/^\/dev\/(shm\/|zero\b|null$)/.test(name)
    return isDevice ? [{ kind: 'Device', detail: name }] : []
  })
}

/** The successor has the root process's namespaces, too; it would have to create any other. */
const namespaceKinds = ['cgroup', 'ipc', 'mnt', 'net', 'pid', 'user', 'uts'] as const
type Namespaces = Readonly<Partial<Record<(typeof namespaceKinds)[number], string>>>

async function namespacesOf(fs: ProcFs, pid: number): Promise<Namespaces> {
  const links = await Promise.all(
    namespaceKinds.map(async kind => [kind, await linkIfThere(`${fs.proc}/${pid}`, `ns/${kind}`)] as const),
  )
  return Object.fromEntries(links.filter(([, link]) => link !== undefined))
}

const run = promisify(execFile)

/** Ample: `inspect` accesses only the kernel's own filesystems. */
const lookMs = 10_000

async function look(pids: readonly number[], { programs, signal }: FindOptions): Promise<string> {
  const over = AbortSignal.timeout(lookMs)
  const { stdout } = await run(`${programs}/inspect`, pids.map(String), {
    maxBuffer: 4 * 1024 * 1024,
    killSignal: 'SIGKILL',
    signal: signal === undefined ? over : AbortSignal.any([signal, over]),
  })
  return stdout
}

/**
 * The kernel's names of protocols whose sockets CRIU cannot save. CRIU itself refuses protocols that it does not know.
 */
const foreignProtocols =
  /^(SCTP|DCCP|SMC|AF_VSOCK|VSOCK|ALG|XDP|RDS|TIPC|CAN|BT|KCM|QIPCRTR|PPPOE|L2TP|AX25)/i

export function parseLook(text: string): (Finding & { readonly pid?: number })[] {
  return text.split('\n').flatMap((line): (Finding & { readonly pid?: number })[] => {
    const [word, first = '', second = '', third = ''] = line.split(' ')
    if (word === 'sysv') return [{ kind: 'SystemV', detail: `${second} ${sysvNames[first] ?? first}` }]
    if (word !== 'socket') return []
    const pid = Number(first)
    const detail = `descriptor ${second}, ${third}`
    if (third.startsWith('MPTCP')) return [{ kind: 'Mptcp', detail, pid }]
    return foreignProtocols.test(third) ? [{ kind: 'ForeignSocket', detail, pid }] : []
  })
}

const sysvNames: Readonly<Record<string, string>> = {
  shm: 'segments of shared memory',
  sem: 'sets of semaphores',
  msg: 'message queues',
}
