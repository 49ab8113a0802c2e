import type { Clone } from '../criu/memory-driver.ts'
import type { PodView } from '../observe/snapshot.ts'
import { watchName } from '../state/watch-name.ts'
import { unwatch } from './remains.ts'
import type { TaskContext } from './task-context.ts'

/**
 * Watches an app before its thaw. Its pod may be force-deleted before the app answers, and its agent may exit before it
 * has reported the app. Then the sentinel's watch is the only trace of it, and without a watch it would run through its
 * grace period beside its successor.
 *
 * @throws AgentError ProcessGone, SentinelRefused, SentinelLost, SentinelUnavailable, or the signal's reason.
 */
export async function watchThaw(
  { sentinel, deaths }: Pick<TaskContext, 'sentinel' | 'deaths'>,
  pod: PodView,
  { containers, stage }: Clone,
  signal: AbortSignal,
): Promise<void> {
  for (const { name, app } of containers) {
    const { containerId = '' } = pod.containers.find(each => each.name === name) ?? {}
    const watch = watchName({ uid: pod.uid, container: name, containerId })
    // An earlier clone of this container may have been watched and have ended. An app that runs already keeps its
    // redirect.
    if (stage === 'Frozen') await unwatch(sentinel, watch, signal)
    await sentinel.watch(watch, app, signal)
  }
  signal.throwIfAborted()
  deaths.arriving(pod)
}
