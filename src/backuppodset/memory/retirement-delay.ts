import { kindLabels } from '../../api/pod-kind.ts'
import type { Clock } from '../../kube/clock.ts'
import type { Pod } from '../../kube/resources.ts'
import { slotOf } from '../../slot/observe/candidate.ts'
import { viewOf } from '../pod/view.ts'
import type { PodView, RetiredPod } from '../snapshot.ts'

/**
 * Records since when this process has seen the successor of each retired pod on stage. A new leader starts to count
 * from zero: the pods are deleted a bit later.
 */
export interface RetirementDelay {
  of(pod: Pod, live: readonly PodView[]): RetiredPod[]
  forget(uid: string): void
}

export function createRetirementDelay(clock: Clock): RetirementDelay {
  const since = new Map<string, number>()
  return {
    of(pod, live) {
      const { uid, labels: own } = pod.metadata
      const slot = slotOf(pod)
      const successor = live.some(
        each => each.kind === 'primary' && each.slot === slot && each.ready && !each.stage?.promoting,
      )
      if (!successor) since.delete(uid)
      else if (!since.has(uid)) since.set(uid, clock.monotonic())
      // The rules know three kinds of pods; a retired pod was a primary.
      const asPrimary = {
        ...pod,
        metadata: { ...pod.metadata, labels: { ...own, ...kindLabels('primary') } },
      }
      const view = viewOf(asPrimary, undefined)
      return view === undefined ? [] : [{ ...view, succeededAt: since.get(uid) }]
    },
    forget: uid => since.delete(uid),
  }
}
