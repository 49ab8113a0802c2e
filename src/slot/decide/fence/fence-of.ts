import type { Fence } from '../../../api/fence.ts'
import type { SlotMemory } from '../memory-view.ts'
import type { SlotSnapshot } from '../snapshot.ts'
import { verdictOf } from './verdict.ts'
import { fenceOfSuccessor, nextFence, wantedVoters } from './voters.ts'

/**
 * Returns the fence that the Lease of a slot should have.
 *
 * @param holders nodes that are to keep its generations; `ends`: another pod or another incarnation gets the slot.
 * @param isUnwanted another pod is to have the slot, and no agent can stop the primary.
 */
export function fenceOf(
  s: SlotSnapshot,
  slot: SlotMemory | undefined,
  holders: readonly string[] | 'ends' | undefined,
  isUnwanted: boolean,
): Fence | undefined {
  if (slot === undefined) return undefined
  const { lease, source } = slot
  if (holders === 'ends') return fenceOfSuccessor(lease.fence)
  const nodes = s.memory?.nodes ?? new Map()
  return nextFence(lease.fence, {
    voters: wantedVoters(nodes, lease.node, holders ?? [], lease.fence?.voters),
    timeoutMs: s.memory?.nodeTimeoutMs,
    acknowledged: source?.acknowledged,
    isRecovered: verdictOf(s, slot).type === 'RecoverInPlace',
    isUnwanted,
    isReachable: slot.votes?.isReachable === true,
  })
}
