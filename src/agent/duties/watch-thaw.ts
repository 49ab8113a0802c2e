import type { Clone } from '../driver/memory-driver.ts'
import { watchName } from './deaths.ts'
import { unwatch } from './remains.ts'
import type { PodView } from './snapshot.ts'
import type { Work } from './work.ts'

/**
 * Watches what is about to run before it does. Its pod may be deleted by force before it answers, and its agent may end
 * before it has told anybody: then what the sentinel watches is all that is known of it, and it would run through its grace
 * beside its successor.
 *
 * @throws AgentError ProcessGone, SentinelRefused, SentinelLost, SentinelUnavailable, or the signal's reason.
 */
export async function watchThaw(
  { sentinel, deaths }: Pick<Work, 'sentinel' | 'deaths'>,
  pod: PodView,
  { containers, stage }: Clone,
  signal: AbortSignal,
): Promise<void> {
  for (const { name, app } of containers) {
    const { containerId = '' } = pod.containers.find(each => each.name === name) ?? {}
    const watch = watchName({ uid: pod.uid, container: name, containerId })
    // A memory that was brought back here before may have been watched, and has ended. What runs already keeps its grave.
    if (stage === 'Frozen') await unwatch(sentinel, watch, signal)
    await sentinel.watch(watch, app, signal)
  }
  signal.throwIfAborted()
  deaths.arriving(pod)
}
