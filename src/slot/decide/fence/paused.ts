/**
 * The fences of a paused owner. No other pod takes over during a pause, whatever memory other nodes have. But voters arm and
 * change as always, and a primary that they have stopped gets a new term when its node is there again: it would stay stopped
 * until the pause ends, because they answer it no more in the present one.
 */
import { isEqual } from '../../../kube/equal.ts'
import type { SlotActionOf } from '../actions.ts'
import type { SlotMemory } from '../memory-view.ts'
import type { Candidate, SlotSnapshot } from '../snapshot.ts'
import { fenceOf } from './fence-of.ts'
import { untilVerdictOn } from './verdict.ts'

/** Returns a write for each slot whose Lease should have another fence. */
export const fencesInPause = (s: SlotSnapshot): SlotActionOf<'writeSlot'>[] =>
  primariesAlone(s).flatMap(({ slot, pod }): SlotActionOf<'writeSlot'>[] => {
    const { lease, resourceVersion: version } = slot
    const fence = fenceOf(s, slot, lease.holders, false)
    const restarts = slot.restarts ?? pod.stage?.restarts ?? 0
    return fence === undefined || isEqual(fence, lease.fence)
      ? []
      : [{ type: 'writeSlot', lease: { ...lease, fence }, version, restarts, stateLost: false }]
  })

/** Returns the ms until a primary may be recovered; undefined if none is. */
export const untilFenceInPause = (s: SlotSnapshot): number | undefined =>
  untilVerdictOn(
    s,
    primariesAlone(s).map(({ slot }) => slot),
  )

/**
 * Returns the slots whose primaries are there, as if no other node had their memory. The fence of any other slot stays as it
 * is: its pod may run without an agent that can stop it, and the next term would not be armed when the pause ends.
 */
function primariesAlone(s: SlotSnapshot): readonly { readonly slot: SlotMemory; readonly pod: Candidate }[] {
  return [...(s.memory?.slots.values() ?? [])].flatMap(slot => {
    const { lease } = slot
    const isLeaving = lease.retainedSince !== undefined || lease.suspended || lease.ending !== undefined
    if (isLeaving || s.memory?.foreign?.has(lease.slot)) return []
    const pod = s.pods.find(({ uid }) => uid === lease.holder.uid)
    const isThere =
      pod?.kind === 'primary' && pod.slot === lease.slot && pod.node !== undefined && pod.node === lease.node
    if (!isThere || pod.waking || pod.stage?.promoting || pod.stage?.died) return []
    return [{ slot: { ...slot, copies: [] }, pod }]
  })
}
