/** Finds processes that could take over a CRIU that works in their pod, where it has rights that they lack. */
import { opendir } from 'node:fs/promises'
import { join } from 'node:path'
import { AgentError } from '../../api/agent-errors.ts'
import { dangerousCapabilities } from '../../api/memory-rules.ts'
import { podDirectory } from '../container/cgroup.ts'
import {
  linkIfThere,
  numbers,
  onHost,
  type ProcFs,
  readIfThere,
  statusOf,
  unlessGone,
} from '../container/process.ts'
import type { LocatedPod } from './memory-driver.ts'
import { capabilityNumbers } from './rights.ts'

/** Most cgroups of a pod: it has one for each container, and few containers make more. */
const mostGroups = 1_000

/**
 * Refuses a pod if a process in the pid namespace of a saved container could gain dangerous capabilities. That includes
 * debuggers attached later and commands run in the container, which the pod template does not show.
 *
 * @throws AgentError Unsupported
 */
export async function assertNoOnlookers(fs: ProcFs, { pod, containers }: LocatedPod): Promise<void> {
  const spaces = new Map<string, string>()
  for (const { name, init, app } of containers)
    for (const process of [init, app]) {
      const space = process && (await linkIfThere(`${fs.proc}/${process.pid}`, 'ns/pid'))
      if (space !== undefined) spaces.set(space, name)
    }
  const groups = new Set(
    containers.flatMap(it => it.cgroups.map(path => podDirectory(path, pod.uid) ?? path)),
  )
  for (const group of groups)
    for await (const pid of membersOf(onHost(fs, join('/sys/fs/cgroup', group)))) {
      const space = await linkIfThere(`${fs.proc}/${pid}`, 'ns/pid')
      // The runtime's own processes, in the node's pid namespace, may be in a pod's cgroup.
      const container = space === undefined ? undefined : spaces.get(space)
      if (container === undefined) continue
      const fields = (await statusOf(fs, pid))?.fields
      const has = ['CapBnd', 'CapPrm'].reduce(
        (set, name) => set | BigInt(`0x${fields?.get(name) ?? '0'}`),
        0n,
      )
      const found = dangerousCapabilities.filter(name => ((has >> capabilityNumbers[name]) & 1n) !== 0n)
      if (found.length === 0) continue
      const program = fields?.get('Name') ?? '?'
      throw new AgentError(
        'Unsupported',
        `container ${container}: process ${pid} (${program}) may have ${found.join(', ')}, with which it could take over CRIU`,
      )
    }
}

async function* membersOf(root: string): AsyncGenerator<number> {
  const queue = [root]
  for (const [at, group] of queue.entries()) {
    yield* numbers(await unlessThreaded(readIfThere(join(group, 'cgroup.procs'))))
    const directory = await unlessGone(opendir(group))
    if (directory === undefined) continue
    for await (const entry of directory) if (entry.isDirectory()) queue.push(join(group, entry.name))
    if (queue.length - at > mostGroups)
      throw new AgentError('Unsupported', `more than ${mostGroups} cgroups in the pod`)
  }
}

/** Reading `cgroup.procs` fails in a threaded cgroup; its processes belong to the cgroup above. */
const unlessThreaded = (text: Promise<string | undefined>): Promise<string | undefined> =>
  text.catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'EOPNOTSUPP') return undefined
    throw error
  })
