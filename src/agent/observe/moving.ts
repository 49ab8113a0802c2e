/** Whether clients wait for a memory that leaves this node, or comes to it. Pure. */
import type { SlotLease } from '../../api/slot-lease.ts'
import type { PodView, Snapshot } from './snapshot.ts'

/**
 * True while a primary here is to be stopped for its successor, or a pod here is to take over. The disk waits meanwhile.
 *
 * @param now by the clock of the node, ms since the epoch.
 */
export const isMoving = ({ slots, pods }: Pick<Snapshot, 'slots' | 'pods'>, now: number): boolean =>
  slots.some(isHandedOver) || pods.some(pod => isLeaving(pod, slots, now) || isAwaited(pod, slots))

const isHandedOver = ({ handover, holder, policy }: SlotLease): boolean =>
  handover !== undefined && handover !== holder.uid && policy?.paused !== true

/** A deleted primary serves on, and is saved once more. */
const isLeaving = ({ uid, heldEnd }: PodView, slots: readonly SlotLease[], now: number): boolean =>
  heldEnd !== undefined && now < heldEnd.until && slots.some(({ holder }) => holder.uid === uid)

/** It was made for its slot, and has no memory that runs yet. */
function isAwaited(pod: PodView, slots: readonly SlotLease[]): boolean {
  const { uid, madeForSlot, understudy, terminating, serving, understudyState } = pod
  if (!madeForSlot || !understudy || terminating || serving?.status === 'True') return false
  return (
    understudyState?.reason !== 'RestoreFailed' &&
    slots.some(({ heir, holder }) => holder.uid === uid || heir?.uid === uid)
  )
}
