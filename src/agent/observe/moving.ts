/** Slots whose memory leaves this node, or comes to it, while clients wait. Pure. */
import { servingReasons } from '../../api/pod-contract.ts'
import type { SlotLease } from '../../api/slot-lease.ts'
import { slotName } from '../../checkpoint/manifest.ts'
import type { PodView, Snapshot } from './snapshot.ts'

/**
 * Returns the names of the slots of this node whose primary is to be stopped for its successor, or whose next pod is to take over. The
 * disk of the node waits meanwhile. A tenant can make that last, so the caller sets a bound.
 *
 * @param now by the clock of the node, ms since the epoch.
 */
export function movingSlots(
  { node, slots, pods }: Pick<Snapshot, 'node' | 'slots' | 'pods'>,
  now: number,
): ReadonlySet<string> {
  const byUid = new Map(pods.map(pod => [pod.uid, pod]))
  const isMoving = (lease: SlotLease): boolean => {
    const primary = byUid.get(lease.holder.uid)
    const heir = byUid.get(lease.heir?.uid ?? '')
    return (
      (isHandedOver(lease) && (lease.node === node || lease.holders.includes(node))) ||
      (primary !== undefined && (isLeaving(primary, now) || isAwaited(primary))) ||
      (heir !== undefined && isAwaited(heir))
    )
  }
  return new Set(slots.filter(isMoving).map(slotName))
}

const isHandedOver = ({ handover, holder, policy }: SlotLease): boolean =>
  handover !== undefined && handover !== holder.uid && policy?.paused !== true

/** A deleted primary serves on, and is saved once more. */
const isLeaving = ({ heldEnd }: PodView, now: number): boolean => heldEnd !== undefined && now < heldEnd.until

/** Conditions of a pod that has not run with the memory yet. */
const before: readonly string[] = [servingReasons.offStage, servingReasons.resuming]

/** It was made for its slot, and has not answered yet. */
const isAwaited = (pod: PodView): boolean =>
  pod.madeForSlot &&
  pod.understudy &&
  !pod.terminating &&
  (pod.serving === undefined || before.includes(pod.serving.reason)) &&
  pod.understudyState?.reason !== 'RestoreFailed'
