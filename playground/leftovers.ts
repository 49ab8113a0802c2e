import { readFile } from 'node:fs/promises'
import { cgroupsOf, detectCgroups, processesIn } from './cgroups.ts'
import { runToEnd } from './exec.ts'
import { hostLinks, networkNamespaces } from './network.ts'
import { clusterPaths } from './paths.ts'
import { labelPrefix } from './plan.ts'
import { isAlive } from './process.ts'
import { readState } from './state.ts'

/** Everything that exists on this machine for one cluster, as the kernel (not a record) lists it. */
export interface Holdings {
  readonly processes: readonly number[]
  readonly mounts: readonly string[]
  readonly namespaces: readonly string[]
  readonly links: readonly string[]
  readonly cgroups: readonly string[]
}

export async function holdingsOf(cluster: string, root?: string): Promise<Holdings> {
  const prefix = labelPrefix(cluster)
  const [cgroups, namespaces, links] = await Promise.all([
    detectCgroups().then(it => cgroupsOf(it, prefix)),
    networkNamespaces().then(names => names.filter(name => name.startsWith(prefix))),
    hostLinks(cluster),
  ])
  const pids = await processesIn(cgroups)
  for (const namespace of namespaces) for (const pid of await processesInNetwork(namespace)) pids.add(pid)
  for (const { outer, init } of Object.values((await readState(cluster, root))?.machines ?? {})) {
    for (const identity of [outer, init]) if (await isAlive(identity)) pids.add(identity.pid)
  }
  return {
    processes: [...pids].sort((a, b) => a - b),
    mounts: mountsBelow(await readFile('/proc/self/mountinfo', 'utf8'), [
      `/run/netns/${prefix}`,
      `${clusterPaths(cluster, root).root}/`,
    ]),
    namespaces,
    links,
    cgroups,
  }
}

/** Returns the pids of processes in a named network namespace, including programs started in it by hand. */
export async function processesInNetwork(namespace: string): Promise<number[]> {
  const { code, stdout, stderr } = await runToEnd(['ip', 'netns', 'pids', namespace])
  if (code !== 0) {
    // Another process may be taking the cluster down at this moment.
    if (!(await networkNamespaces()).includes(namespace)) return []
    throw new Error(`ip netns pids ${namespace}: ${stderr.trim()}`)
  }
  return stdout.split('\n').filter(Boolean).map(Number)
}

/** Returns the mount points in a /proc/PID/mountinfo that begin with one of the given prefixes, deepest first. */
export function mountsBelow(mountinfo: string, prefixes: readonly string[]): string[] {
  const points = mountinfo
    .split('\n')
    .map(line => line.split(' ')[4])
    .filter(point => point !== undefined)
    // The kernel escapes spaces and the like as octal numbers.
    .map(point =>
      point.replace(/\\([0-7]{3})/g, (_, octal: string) => String.fromCharCode(Number.parseInt(octal, 8))),
    )
  return points.filter(point => prefixes.some(prefix => point.startsWith(prefix))).reverse()
}

export function countsOf(holdings: Holdings): Record<keyof Holdings, number> {
  return {
    processes: holdings.processes.length,
    mounts: new Set(holdings.mounts).size,
    namespaces: holdings.namespaces.length,
    links: holdings.links.length,
    cgroups: holdings.cgroups.length,
  }
}
