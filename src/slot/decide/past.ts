import { type SlotLease, tookOver } from '../../api/slot-lease.ts'
import type { SlotMemory } from './memory-view.ts'

/**
 * Returns how the slot has come to its primary. The copy with which a clone began is forgotten once another node has its memory, too, or
 * its own node, if no other can: until then, the end of one node could leave the slot without any.
 * @param present the slot, if its incarnation stays
 */
export function pastOf(
  present: SlotMemory | undefined,
  isRefused: boolean,
  holders: readonly string[] = [],
): Pick<SlotLease, 'handedOverBy' | 'cloneOf'> {
  if (present === undefined) return { handedOverBy: tookOver }
  const { lease, copies, source } = present
  const { handedOverBy, cloneOf } = lease
  const isKept =
    holders.length === 0
      ? source !== undefined && source.generation > 0
      : copies.some(({ node, stale }) => node !== lease.node && !stale)
  return {
    ...(handedOverBy !== undefined && { handedOverBy }),
    ...(cloneOf !== undefined &&
      (isRefused || !isKept) && { cloneOf: { ...cloneOf, served: true as const } }),
  }
}
