import { labels } from '../api/labels.ts'
import type { Clock } from '../kube/clock.ts'
import type { Pod } from '../kube/resources.ts'
import type { Change } from '../kube/store.ts'
import { servingOf } from './memory/stage.ts'
import { controllerOf } from './pod/owner.ts'
import { epochOf, slotOf } from './pod/view.ts'
import type { LossReason, LostPrimary } from './snapshot.ts'

/**
 * Remembers which primary a slot lost and when this process first saw it, so that its successor can be reported as a
 * failover with a duration. For display only: a new leader that knows less decides the same.
 */
export interface Losses {
  /** To be called with every change of a pod, before the pass that repairs it. */
  note(change: Change<Pod>): void
  of(setKey: string): ReadonlyMap<number, LostPrimary>
  /** The slot has a primary again. */
  repaired(setKey: string, slot: number): void
  /** The set has all its primaries, or is gone: what is left were releases, not losses. */
  forget(setKey: string): void
}

/**
 * @param isOurs true for the uid of a pod that we delete ourselves: a release, not a loss.
 * @param setUid uid of the set that exists under a key: only its own pods count, not those of a namesake before it or
 *   of somebody who uses our labels.
 */
export function createLosses(
  clock: Clock,
  isOurs: (uid: string) => boolean,
  setUid: (setKey: string) => string | undefined,
): Losses {
  const bySet = new Map<string, Map<number, LostPrimary>>()
  // Seen, not only done: a standby must not take the losses that others repaired for its own when it leads.
  const repair = ({ type, object }: Change<Pod>) => {
    const slot = slotOf(object)
    if (type === 'deleted' || slot === undefined || isGoing(object)) return
    if (object.metadata.labels?.[labels.type] !== 'primary') return
    const slots = bySet.get(`${object.metadata.namespace}/${object.metadata.labels[labels.set]}`)
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
      // Deleted after it died: lost since its death.
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
  if (before.metadata.labels?.[labels.type] !== 'primary' || isGoing(before)) return undefined
  if (change.type === 'deleted' || change.object.metadata.deletionTimestamp !== undefined) return 'PodDeleted'
  if (isFinished(change.object)) return 'PodFinished'
  return isDeath(change) ? 'Died' : undefined
}

/** An agent has just said that the app of this pod has ended. */
export const isDeath = (change: Change<Pod>): boolean => {
  const { death } = servingOf(change.object)
  return death !== undefined && (change.old === undefined || servingOf(change.old).death !== death)
}

const isGoing = (pod: Pod): boolean => pod.metadata.deletionTimestamp !== undefined || isFinished(pod)

/** The pod has ended and will not start again. */
export const isFinished = (pod: Pod): boolean =>
  pod.status?.phase === 'Failed' || pod.status?.phase === 'Succeeded'
