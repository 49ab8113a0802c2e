import { AgentError } from '../../api/agent-errors.ts'
import type { TaskOf } from '../decide/task.ts'
import { watchName } from '../state/watch-name.ts'
import { letEarlierGo } from './hand-over.ts'
import { redirectLastsMs, unwatch, watchesOf } from './remains.ts'
import type { TaskContext } from './task-context.ts'

type WatchContext = Pick<
  TaskContext,
  'sentinel' | 'understudies' | 'deaths' | 'grants' | 'inquiry' | 'clock' | 'log'
>

/**
 * Watches the processes that hold a primary's memory, and prepares the redirect to its heir. The watches stay when this
 * task ends: the sentinel keeps them, and the next run of this task or the next agent takes them over.
 */
export async function watchPrimary(
  work: WatchContext,
  task: TaskOf<'watchPrimary'>,
  signal: AbortSignal,
): Promise<void> {
  const { pod, lease, way } = task
  const { sentinel, understudies, deaths } = work
  try {
    const { located } = await understudies.enter(pod, signal)
    const containers = located.containers.map(container => ({
      ...container,
      watch: watchName({ uid: pod.uid, container: container.name, containerId: container.containerId }),
    }))
    // All watches come before any redirect: each death is detected even if a redirect cannot be set up.
    for (const { watch, name, app } of containers) {
      if (app === undefined) throw new AgentError('NotRunning', `container ${name}`)
      // A redirect to a pod that is no longer the heir would answer with other memory than this slot's.
      if (way === undefined) await unwatch(sentinel, watch, signal)
      await sentinel.watch(watch, app, signal)
    }
    deaths.guarded(pod)
    if (lease.grant !== undefined) await noteAlive(work, task, containers, signal)
    if (way !== undefined)
      for (const { watch, init } of containers)
        await sentinel.prepareRedirect(
          { name: watch, netns: init, heir: way, lastsMs: redirectLastsMs },
          signal,
        )
    await letEarlierGo(work, task, signal)
  } catch (error) {
    understudies.lookAgain(pod.uid)
    throw error
  }
}

/** Notes that the primary lives, if all its processes do: then no earlier agent has told the heir of its death. */
async function noteAlive(
  { sentinel, grants }: WatchContext,
  { pod, lease }: TaskOf<'watchPrimary'>,
  containers: readonly { readonly watch: string }[],
  signal: AbortSignal,
): Promise<void> {
  const watches = await watchesOf(sentinel, pod.uid, signal)
  const isWhole = containers.every(({ watch }) => watches.some(({ name }) => name === watch))
  if (isWhole && watches.every(({ diedUnixNs }) => diedUnixNs === undefined)) grants.isAlive(lease)
}
