/**
 * Which nodes keep the memory of a slot, by their reports. A silent agent, or an agent that has only just started,
 * proves nothing.
 */
import { diskUnreadReason, type NodeReportStatus, type SlotReport } from '../../api/node-report.ts'
import type { SlotLease } from '../../api/slot-lease.ts'

export const isKept = ({ generation, onDisk }: SlotReport): boolean => generation > 0 || onDisk !== undefined

/** True unless the report says that the node has no memory of its slot. */
export const mayBeKept = (said: SlotReport): boolean => isKept(said) || said.reason === diskUnreadReason

/**
 * Returns the nodes that may have memory of this incarnation, by the Lease, which outlives reports. If the Lease has no `kept`
 * (an earlier version wrote it), all nodes that it names count. The last primary's node is one of them: it has the
 * generations that it saved itself, or kept as a holder before.
 */
export const mayKeep = ({
  kept,
  holders,
  node,
}: Pick<SlotLease, 'kept' | 'holders' | 'node'>): readonly string[] =>
  kept ?? (node === undefined || holders.includes(node) ? holders : [...holders, node])

/**
 * True if the node has no memory of a slot: its agent lists all memory that it keeps there, and this slot is not in the
 * list.
 */
export const hasNothing = (status: Completeness | undefined, said: SlotReport | undefined): boolean =>
  status?.slotsKnown === true && (said === undefined ? !isCut(status) : !mayBeKept(said))

/** The fields that tell whether a report names all slots that are kept on its node. */
export type Completeness = Partial<Pick<NodeReportStatus, 'slotsKnown' | 'slots' | 'slotCount'>>

/** The report had no room for all slots with memory: the node may keep a slot that the report does not name. */
const isCut = ({ slots = [], slotCount = 0 }: Completeness): boolean => slotCount > slots.length
