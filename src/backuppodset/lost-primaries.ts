import { labels } from '../api/labels.ts'
import { kindLabelOf } from '../api/pod-kind.ts'
import { servingRecordOf } from '../api/serving-record.ts'
import type { Clock } from '../kube/clock.ts'
import { controllerOf } from '../kube/owner.ts'
import type { Pod } from '../kube/resources.ts'
import type { Change } from '../kube/store.ts'
import type { LossReason, LostPrimary } from '../slot/decide/snapshot.ts'
import { epochOf, isFinished, slotOf } from '../slot/observe/candidate.ts'
import { servingOf } from '../slot/observe/stage.ts'

/**
 * Remembers which primary each slot of one set lost and when this process first saw the loss, to report the takeover as
 * a failover with its duration. For display only: a new leader that knows less makes the same decisions.
 */
export interface LostPrimaries {
  /** Call with every change of a pod that names or named the set, before the pass that repairs it. */
  note(change: Change<Pod>): void
  of(): ReadonlyMap<number, LostPrimary>
  /** The slot has a primary again. */
  repaired(slot: number): void
  /**
   * The set had all its primaries at this time, monotonic ms: the entries until then were releases, not losses. A loss that is
   * seen while a pass is under way is not in its snapshot.
   */
  clear(until: number): void
}

/**
 * @param set only this set's own pods count, not those of an earlier set of the same name or of another client that
 *   uses our labels.
 * @param isOurs true for the uid of a pod that the operator deletes itself: a release, not a loss.
 */
export function createLostPrimaries(
  set: { readonly key: string; readonly uid: string },
  clock: Clock,
  isOurs: (uid: string) => boolean,
): LostPrimaries {
  // Replaced and not cleared: a running pass has the previous one in its snapshot.
  let slots = new Map<number, LostPrimary>()
  const isNamed = ({ metadata: { namespace, labels: own } }: Pod) =>
    `${namespace}/${own?.[labels.set]}` === set.key
  // Based on watched changes, not only on our own actions: a new leader must not count losses that others repaired.
  const repair = ({ type, object }: Change<Pod>) => {
    const slot = slotOf(object)
    if (type === 'deleted' || slot === undefined || isGoing(object) || !isNamed(object)) return
    if (kindLabelOf(object) !== 'primary') return
    const lost = slots.get(slot)
    if (lost !== undefined && epochOf(object) > lost.epoch) slots.delete(slot)
  }
  return {
    note(change) {
      repair(change)
      const reason = lossIn(change)
      const pod = change.type === 'updated' ? change.old : change.object
      const slot = slotOf(pod)
      if (reason === undefined || slot === undefined || !isNamed(pod) || isOurs(pod.metadata.uid)) return
      if (controllerOf(pod)?.uid !== set.uid) return
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
    of: () => slots,
    repaired: slot => slots.delete(slot),
    clear(until) {
      slots = new Map([...slots].filter(([, { seenAt }]) => seenAt > until))
    },
  }
}

function lossIn(change: Change<Pod>): LossReason | undefined {
  if (change.type === 'added') return undefined
  const before = change.old
  if (kindLabelOf(before) !== 'primary' || isGoing(before)) return undefined
  if (change.type === 'deleted' || change.object.metadata.deletionTimestamp !== undefined) return 'PodDeleted'
  if (isFinished(change.object)) return 'PodFinished'
  if (!isDeath(change)) return undefined
  return servingRecordOf(change.object).byItself === false ? 'Ended' : 'Died'
}

/** True if this change is the first in which an agent reports the death of the pod's app. */
export const isDeath = (change: Change<Pod>): boolean => {
  const { death } = servingOf(change.object)
  return death !== undefined && (change.old === undefined || servingOf(change.old).death !== death)
}

const isGoing = (pod: Pod): boolean => pod.metadata.deletionTimestamp !== undefined || isFinished(pod)
