import { reasons } from '../../api/reasons.ts'
import type { SlotLease } from '../../api/slot-lease.ts'
import type { NodeView, Word } from '../decide/memory-view.ts'

/**
 * Returns a warning if slots have fewer copies than the set asks for, because its memory must not be kept on nodes that
 * could keep it.
 */
export function holderCaveats(
  leases: readonly Pick<SlotLease, 'holders'>[],
  copies: number,
  nodes: ReadonlyMap<string, Pick<NodeView, 'ready' | 'forbidden'>>,
): readonly Word[] {
  const short = leases.filter(({ holders }) => holders.length < copies).length
  const forbidden = [...nodes.values()].filter(node => node.ready && node.forbidden).length
  if (short === 0 || forbidden === 0) return []
  return [
    {
      reason: reasons.fewerCopies,
      message: `${short} of ${leases.length} primaries have fewer copies than checkpoint.copies asks for, because the template may not run on ${forbidden} of the ${nodes.size} nodes with an agent (nodeSelector, node affinity, tolerations): let it run on more nodes, lower checkpoint.copies, or set checkpoint.holders to Any`,
    },
  ]
}
