import { mkdir, readdir, readFile, rmdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { isGone } from './process.ts'

/**
 * Every machine is a cgroup of its own, with its daemons (`system`) and its pods (made by the kubelet) below it. So its
 * use can be measured, and each of its processes can be found even if its pid was never recorded.
 */

export const CGROUP_ROOT = '/sys/fs/cgroup'

/** `v1` counts hybrid mode, where the controllers are in v1 hierarchies; there each hierarchy is a directory. */
export interface Cgroups {
  readonly version: 1 | 2
  readonly hierarchies: readonly string[]
}

export async function detectCgroups(root = CGROUP_ROOT): Promise<Cgroups> {
  const names = await readdir(root, { withFileTypes: true })
  if (names.some(it => it.name === 'cgroup.controllers')) return { version: 2, hierarchies: [root] }
  const hierarchies: string[] = []
  for (const entry of names) {
    // `cpu` may be a link to `cpu,cpuacct`; the directory alone counts.
    if (!entry.isDirectory()) continue
    const path = join(root, entry.name)
    if ((await readdir(path)).includes('cgroup.procs')) hierarchies.push(path)
  }
  return { version: 1, hierarchies }
}

/**
 * Weight of a machine against the processes of this host that are in no group (each of those weighs as much as a group
 * by default): a node must not starve because a compiler runs. A real control plane has processors of its own. Here it
 * weighs as much as three nodes; otherwise every write would wait for the containers that the nodes start.
 */
const WEIGHTS = { node: 8, 'control plane': 24, elsewhere: 1 } as const
/** `elsewhere`: nodes that a bench does not measure and that would really have processors of their own. */
export type MachineWeight = keyof typeof WEIGHTS
const defaultWeights = { 'cpu.shares': 1024, 'cpu.weight': 100 } as const

/** Creates a machine's cgroups. Returns the paths that its first process must join. */
export async function createMachineCgroups(
  cgroups: Cgroups,
  label: string,
  weight: MachineWeight,
): Promise<string[]> {
  const joined: string[] = []
  for (const hierarchy of cgroups.hierarchies) {
    const parent = join(hierarchy, label)
    const system = join(parent, 'system')
    await makeDirectory(parent)
    if (cgroups.version === 2) {
      await passOnControllers(hierarchy)
      await passOnControllers(parent)
    }
    await inherit(hierarchy, parent)
    await weigh(parent, weight)
    await allowRealtime(parent)
    // Within the machine the daemons get the weight that systemd gives them: by default half of the pods' on two
    // processors.
    await makeDirectory(system)
    await inherit(parent, system)
    joined.push(system)
  }
  return joined
}

/** On v2 a group's children have only the controllers that it passes on. The kubelet insists on these. */
async function passOnControllers(group: string): Promise<void> {
  const available = (await readFile(join(group, 'cgroup.controllers'), 'utf8')).trim().split(/\s+/)
  const wanted = available.filter(name => ['cpu', 'cpuset', 'io', 'memory', 'pids', 'hugetlb'].includes(name))
  await writeFile(join(group, 'cgroup.subtree_control'), wanted.map(name => `+${name}`).join(' '))
}

/** A v1 cpuset accepts no process until it has processors and memory nodes. */
async function inherit(parent: string, child: string): Promise<void> {
  const files = await readdir(child)
  for (const name of ['cpuset.cpus', 'cpuset.mems']) {
    if (!files.includes(name) || !files.includes('cgroup.clone_children')) continue
    await writeFile(join(child, name), await readFile(join(parent, name), 'utf8'))
  }
}

/**
 * A kernel with group scheduling of realtime processes gives new groups of v1 no time for them. The root of a real node has nearly all.
 * Sentinels ask for a tenth of a second each; when eight machines have that, the next ones go without.
 */
async function allowRealtime(group: string): Promise<void> {
  if (!(await readdir(group)).includes('cpu.rt_runtime_us')) return
  await writeFile(join(group, 'cpu.rt_runtime_us'), '110000').catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'EINVAL') throw error
  })
}

/** @param group a machine's cgroup, in any hierarchy */
export async function weigh(group: string, weight: MachineWeight): Promise<void> {
  const files = await readdir(group)
  for (const [file, one] of Object.entries(defaultWeights)) {
    if (files.includes(file)) await writeFile(join(group, file), String(one * WEIGHTS[weight]))
  }
}

async function makeDirectory(path: string): Promise<void> {
  await mkdir(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'EEXIST') throw error
  })
}

/** Returns all top-level cgroup directories, of every hierarchy, whose name begins with `prefix`. */
export async function cgroupsOf(cgroups: Cgroups, prefix: string): Promise<string[]> {
  const found: string[] = []
  for (const hierarchy of cgroups.hierarchies) {
    for (const name of await readdir(hierarchy))
      if (name.startsWith(prefix)) found.push(join(hierarchy, name))
  }
  return found
}

/** Returns the directory itself and all directories below it, deepest first. */
export async function cgroupTree(path: string): Promise<string[]> {
  const below: string[] = []
  try {
    for (const entry of await readdir(path, { withFileTypes: true })) {
      if (entry.isDirectory()) below.push(...(await cgroupTree(join(path, entry.name))))
    }
  } catch (error) {
    if (isGone(error)) return below
    throw error
  }
  return [...below, path]
}

/** Returns the pids of all processes in the given cgroups and below. */
export async function processesIn(paths: readonly string[]): Promise<Set<number>> {
  const pids = new Set<number>()
  for (const path of paths) {
    for (const directory of await cgroupTree(path)) {
      const text = await readFile(join(directory, 'cgroup.procs'), 'utf8').catch((error: unknown) => {
        if (isGone(error)) return ''
        throw error
      })
      // 0 stands for a process that our pid namespace cannot see; ours sees all of them.
      for (const line of text.split('\n')) if (line !== '' && line !== '0') pids.add(Number(line))
    }
  }
  return pids
}

/** Thaws the cgroups. Call before killing: SIGKILL does not end a frozen process. */
export async function thaw(paths: readonly string[]): Promise<void> {
  for (const path of paths) {
    for (const directory of (await cgroupTree(path)).reverse()) {
      await writeIfThere(join(directory, 'freezer.state'), 'THAWED')
      await writeIfThere(join(directory, 'cgroup.freeze'), '0')
    }
  }
}

/** Stops or resumes all processes of the cgroups at once, as a hypervisor does with a machine. */
export async function pause(paths: readonly string[], isPaused: boolean): Promise<void> {
  for (const path of paths) {
    await writeIfThere(join(path, 'freezer.state'), isPaused ? 'FROZEN' : 'THAWED')
    await writeIfThere(join(path, 'cgroup.freeze'), isPaused ? '1' : '0')
  }
}

/** `r+` does not create: a missing file means another version or hierarchy. */
async function writeIfThere(path: string, text: string): Promise<void> {
  try {
    await writeFile(path, text, { flag: 'r+' })
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    // EACCES: the root of a hierarchy has no such file and forbids creating it.
    if (!isGone(error) && code !== 'EACCES' && code !== 'EPERM') throw error
  }
}

/**
 * Removes cgroups without processes.
 * @throws EBUSY if a cgroup still has processes
 */
export async function removeCgroups(paths: readonly string[]): Promise<void> {
  for (const path of paths) {
    for (const directory of await cgroupTree(path)) {
      await rmdir(directory).catch((error: unknown) => {
        if (!isGone(error)) throw error
      })
    }
  }
}
