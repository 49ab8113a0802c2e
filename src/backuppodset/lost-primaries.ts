import { labels } from '../api/labels.ts'
import { kindLabelOf } from '../api/pod-kind.ts'
import type { Clock } from '../kube/clock.ts'
import { controllerOf } from '../kube/owner.ts'
import type { Pod } from '../kube/resources.ts'
import type { Change } from '../kube/store.ts'
import { servingOf } from './memory/stage.ts'
import { epochOf, isFinished, slotOf } from './pod/candidate.ts'
import type { LossReason, LostPrimary } from './slot-snapshot.ts'

/**
 * Remembers which primary a slot lost and when this process first saw the loss, to report the takeover as a failover
 * with its duration. For display only: a new leader that knows less makes the same decisions.
 */
export interface LostPrimaries {
  /** Call with every change of a pod, before the pass that repairs it. */
  note(change: Change<Pod>): void
  of(setKey: string): ReadonlyMap<number, LostPrimary>
  /** The slot has a primary again. */
  repaired(setKey: string, slot: number): void
  /** The set has all its primaries, or no longer exists: the remaining entries were releases, not losses. */
  forget(setKey: string): void
}

/**
 * @param isOurs true for the uid of a pod that the operator deletes itself: a release, not a loss.
 * @param setUid uid of the set that exists under a key. Only that set's own pods count, not those of an earlier set of
 *   the same name or of another client that uses our labels.
 */
export function createLostPrimaries(
  clock: Clock,
  isOurs: (uid: string) => boolean,
  setUid: (setKey: string) => string | undefined,
): LostPrimaries {
  const bySet = new Map<string, Map<number, LostPrimary>>()
  // Based on watched changes, not only on our own actions: a new leader must not count losses that others repaired.
  const repair = ({ type, object }: Change<Pod>) => {
    const slot = slotOf(object)
    if (type === 'deleted' || slot === undefined || isGoing(object)) return
    if (kindLabelOf(object) !== 'primary') return
    const slots = bySet.get(`${object.metadata.namespace}/${object.metadata.labels?.[labels.set]}`)
    const lost = slots?.get(slot)
    if (lost !== undefined && epochOf(object) > lost.epoch) slots?.delete(slot)
  }
  return {
    note(change) {
      repair(change)
      const reason = lossIn(change)
      const pod = change.type === 'updated' ? change.old : change.object
      const set = pod.metadata.labels?.[labels.set]
      const slot = slotOf(pod)
      if (reason === undefined || set === undefined || slot === undefined || isOurs(pod.metadata.uid)) return
      const key = `${pod.metadata.namespace}/${set}`
      const owner = controllerOf(pod)?.uid
      if (owner === undefined || owner !== setUid(key)) return
      const slots = bySet.get(key) ?? new Map<number, LostPrimary>()
      bySet.set(key, slots)
      // It died first and was deleted later: the loss dates from its death.
      if (slots.get(slot)?.name === pod.metadata.name) return
      slots.set(slot, {
        name: pod.metadata.name,
        slot,
        epoch: epochOf(pod),
        reason,
        seenAt: clock.monotonic(),
      })
    },
    of: setKey => bySet.get(setKey) ?? new Map(),
    repaired: (setKey, slot) => bySet.get(setKey)?.delete(slot),
    forget: setKey => bySet.delete(setKey),
  }
}

function lossIn(change: Change<Pod>): LossReason | undefined {
  if (change.type === 'added') return undefined
  const before = change.old
  if (kindLabelOf(before) !== 'primary' || isGoing(before)) return undefined
  if (change.type === 'deleted' || change.object.metadata.deletionTimestamp !== undefined) return 'PodDeleted'
  if (isFinished(change.object)) return 'PodFinished'
  return isDeath(change) ? 'Died' : undefined
}

/** True if this change is the first in which an agent reports the death of the pod's app. */
export const isDeath = (change: Change<Pod>): boolean => {
  const { death } = servingOf(change.object)
  return death !== undefined && (change.old === undefined || servingOf(change.old).death !== death)
}

const isGoing = (pod: Pod): boolean => pod.metadata.deletionTimestamp !== undefined || isFinished(pod)
