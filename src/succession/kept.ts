/** What nodes say of who keeps the memory of a slot. Silence, and an agent that has only just started, say nothing. */
import { diskUnreadReason, type NodeReportStatus, type SlotReport } from '../api/node-report.ts'
import type { SlotLease } from '../api/slot-lease.ts'

export const isKept = ({ generation, onDisk }: SlotReport): boolean => generation > 0 || onDisk !== undefined

/**
 * Nodes that may have something of this life: by the Lease, which outlives reports; of before it said so, any that it names.
 * The node of the last primary is one of them: what it has saved itself, or was a holder of before, lies there.
 */
export const mayKeep = ({
  kept,
  holders,
  node,
}: Pick<SlotLease, 'kept' | 'holders' | 'node'>): readonly string[] =>
  kept ?? (node === undefined || holders.includes(node) ? holders : [...holders, node])

/** The node has nothing of a slot: its agent says all that is kept there, and this is not among it. */
export const hasNothing = (status: Completeness | undefined, said: SlotReport | undefined): boolean =>
  status?.slotsKnown === true &&
  (said === undefined ? !isCut(status) : !isKept(said) && said.reason !== diskUnreadReason)

/** What says whether a report names all slots that are kept on its node. */
export type Completeness = Partial<Pick<NodeReportStatus, 'slotsKnown' | 'slots' | 'slotCount'>>

/** A report had no room for all of them: one that it does not name may be there all the same. */
const isCut = ({ slots = [], slotCount = 0 }: Completeness): boolean => slotCount > slots.length
