import { join } from 'node:path'
import { numbers, readIfThere, statusOf } from '../discover/process.ts'
import { isAgentError } from '../errors.ts'
import type { DriverDependencies } from './dependencies.ts'
import type { LocatedPod } from './memory-driver.ts'

export interface HeldStop {
  readonly name: string
  /** Of the sentinel that was asked for it. */
  readonly startedUnixNs: bigint
}

const roundMs = 200
const rounds = 15

/**
 * Makes sure that a pod goes on after the connection to the sentinel broke while it was stopped. A sentinel that lives
 * does it, and says so; with one that died, or that does not know of it any more, it is done from here, more than once:
 * a CRIU that outlived the sentinel leaves its processes stopped when it is done with them.
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
      // The one that was asked to stop it lives and knows nothing of it any more: it has continued it.
      if (isAgentError(error, 'SentinelRefused') && (await isSentinelOf(deps, startedUnixNs))) return
      deps.log.warn(
        { err: error, pod: pod.pod.name },
        'the sentinel does not continue a pod; it is done without it',
      )
    }
    // Not at once: one that has just begun would be met before it has everybody in its hands.
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
    // It has ended in between.
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
  }
}
