import { join } from 'node:path'
import { isAgentError } from '../../api/agent-errors.ts'
import { numbers, readIfThere, statusOf } from '../container/process.ts'
import type { DriverDependencies } from './dependencies.ts'
import type { LocatedPod } from './memory-driver.ts'

export interface HeldStop {
  readonly name: string
  /** Start time of the sentinel that made the stop. */
  readonly startedUnixNs: bigint
}

const roundMs = 200
const rounds = 15

/**
 * Resumes a pod after the connection to the sentinel broke during a stop. A living sentinel resumes the pod itself, and
 * says so. If the sentinel died or has forgotten the stop, the agent sends SIGCONT, more than once: a CRIU that
 * outlives the sentinel leaves its processes stopped when it is done.
 */
export async function continueAnyway(
  deps: DriverDependencies,
  pod: LocatedPod,
  { name, startedUnixNs }: HeldStop,
): Promise<void> {
  for (let round = 0; round < rounds; round++) {
    try {
      await deps.sentinel.continue(name)
      return
    } catch (error) {
      if (!isAgentError(error)) throw error
      // The sentinel that made the stop lives and no longer knows it: it has resumed the pod.
      if (isAgentError(error, 'SentinelRefused') && (await isSentinelOf(deps, startedUnixNs))) return
      deps.log.warn({ err: error, pod: pod.pod.name }, 'sentinel cannot resume a pod, so the agent does')
    }
    // Waits first: a CRIU that has just begun may not have seized all processes yet.
    await deps.clock.sleep(roundMs)
    for (const pid of await membersOf(deps, pod)) await continueIfStopped(deps, pid)
  }
}

async function isSentinelOf(deps: DriverDependencies, startedUnixNs: bigint): Promise<boolean> {
  try {
    return (await deps.sentinel.hello()).startedUnixNs === startedUnixNs
  } catch (error) {
    if (isAgentError(error)) return false
    throw error
  }
}

async function membersOf({ fs }: DriverDependencies, pod: LocatedPod): Promise<number[]> {
  const root = join(fs.proc, String(fs.host), 'root/sys/fs/cgroup')
  const groups = pod.containers.flatMap(container => container.cgroups)
  const lists = await Promise.all(groups.map(group => readIfThere(join(root, group, 'cgroup.procs'))))
  return lists.flatMap(list => numbers(list))
}

async function continueIfStopped({ fs }: DriverDependencies, pid: number): Promise<void> {
  if ((await statusOf(fs, pid))?.state !== 'T') return
  try {
    process.kill(pid, 'SIGCONT')
  } catch (error) {
    // The process has ended meanwhile.
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
  }
}
