import { AgentError } from '../../api/agent-errors.ts'
import { bareContainerId, cgroupDirectory, containerPart, parseCgroup, podDirectory } from './cgroup.ts'
import { type Mount, parseMountinfo } from './mountinfo.ts'
import type { ProcessRef } from './process.ts'
import { allPids, inBatches, type ProcFs, readIfThere, startTimeOf, statusOf } from './process.ts'

export interface ContainerName {
  readonly name: string
  /** As in the pod's status: `containerd://ID`. */
  readonly containerId: string
}

export interface LocatedContainer extends ContainerName {
  /** Its PID 1. */
  readonly init: ProcessRef
  /** Number of pid namespaces from the agent's to that of its PID 1: its nesting depth. */
  readonly depth: number
  /** Directories below /sys/fs/cgroup, of one hierarchy, that contain all its processes. */
  readonly cgroups: readonly string[]
}

/**
 * Finds the processes of a pod's containers by the names of their cgroups, without asking any runtime: each runtime
 * names a container's cgroup after its id, below a cgroup named after the pod's UID.
 *
 * @throws AgentError NotRunning when a container has no PID 1.
 */
export async function locateContainers(
  fs: ProcFs,
  podUid: string,
  containers: readonly ContainerName[],
): Promise<LocatedContainer[]> {
  const [pids, hostMounts] = await Promise.all([allPids(fs), mountsOf(fs, fs.host)])
  const found = containers.map(container => ({
    container,
    id: bareContainerId(container.containerId),
    pids: [] as number[],
    cgroups: new Map<string, Set<string>>(),
  }))
  await inBatches(pids, async pid => {
    const memberships = parseCgroup((await readIfThere(`${fs.proc}/${pid}/cgroup`)) ?? '')
    for (const { id, pids: own, cgroups } of found) {
      let member = false
      for (const membership of memberships) {
        if (containerPart(membership.path, podUid, id) === undefined) continue
        member = true
        const directory = cgroupDirectory(hostMounts, membership)
        if (directory === undefined) continue
        const hierarchy = `${membership.name ?? ''}:${membership.controllers.join(',')}`
        cgroups.set(hierarchy, (cgroups.get(hierarchy) ?? new Set()).add(directory))
      }
      if (member) own.push(pid)
    }
  })
  return Promise.all(
    found.map(async ({ container, pids: own, cgroups }) => {
      const init = await firstProcess(fs, own)
      // One hierarchy is enough. The one with the most cgroups includes every process.
      const directories = [...cgroups.values()].sort((a, b) => b.size - a.size)[0]
      if (init === undefined || directories === undefined)
        throw new AgentError('NotRunning', `container ${container.name}`)
      return { ...container, ...init, cgroups: [...directories].sort() }
    }),
  )
}

/**
 * Returns the first process of each pid namespace in a pod's cgroup, whatever its containers are called. With it, the kernel
 * ends all processes of that namespace.
 */
export async function firstProcessesIn(fs: ProcFs, podUid: string): Promise<ProcessRef[]> {
  const found: ProcessRef[] = []
  await inBatches(await allPids(fs), async pid => {
    const memberships = parseCgroup((await readIfThere(`${fs.proc}/${pid}/cgroup`)) ?? '')
    if (memberships.every(({ path }) => podDirectory(path, podUid) === undefined)) return
    const status = await statusOf(fs, pid)
    if (status === undefined || status.state === 'Z' || status.nsPids.at(-1) !== 1) return
    const start = await startTimeOf(fs, pid)
    if (start !== undefined) found.push({ pid, start })
  })
  return found
}

/** Returns the container's PID 1: of the processes that are first in their pid namespace, the one in the outermost. */
async function firstProcess(
  fs: ProcFs,
  pids: readonly number[],
): Promise<{ init: ProcessRef; depth: number } | undefined> {
  const firsts: { readonly pid: number; readonly depth: number }[] = []
  // Keeps nothing of the other processes: the tenant decides how many there are.
  await inBatches(pids, async pid => {
    const status = await statusOf(fs, pid)
    if (status !== undefined && status.state !== 'Z' && status.nsPids.at(-1) === 1)
      firsts.push({ pid, depth: status.nsPids.length })
  })
  firsts.sort((a, b) => a.depth - b.depth || a.pid - b.pid)
  const first = firsts[0]
  const start = first === undefined ? undefined : await startTimeOf(fs, first.pid)
  return first === undefined || start === undefined
    ? undefined
    : { init: { pid: first.pid, start }, depth: first.depth }
}

/** Returns the mounts of a process; none if it is gone. */
export async function mountsOf(fs: ProcFs, pid: number | 'self'): Promise<Mount[]> {
  return parseMountinfo((await readIfThere(`${fs.proc}/${pid}/mountinfo`)) ?? '')
}
