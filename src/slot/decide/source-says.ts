/** The wait for the report of a dead primary's node, as long as other nodes may lack memory. */
import type { SlotReport } from '../../api/node-report.ts'
import { stepsBehind } from './age.ts'
import { toldOf } from './copy-age.ts'
import { isKept } from './kept.ts'
import { usableOf } from './knowledge.ts'
import type { Copy, SlotMemory } from './memory-view.ts'
import type { SlotSnapshot } from './snapshot.ts'
import { reportsStuck } from './stuck.ts'

/**
 * How long to wait for the node of a dead primary, ms: the death is known some milliseconds before the node reports
 * that its memory is usable.
 */
const sourceSaysMs = 2_000

/**
 * Returns the ms to wait for the node of a primary that has just ended; 0 if there is no reason to wait. It waits if
 * that node has not reported usable memory yet, and some other node may lack some of it. Agents report progress every few
 * seconds, so how much is missing there is not known.
 */
export function msUntilSourceSays(s: SlotSnapshot, slot: SlotMemory): number {
  const { source, sourceSeenAt, endedSince } = slot
  if (source === undefined || sourceSeenAt === undefined || endedSince === undefined) return 0
  if (source.usable !== undefined || !isKept(source)) return 0
  if (!usableOf(slot).some(copy => mayLack(source, copy, slot))) return 0
  return Math.max(0, endedSince + sourceSaysMs - s.monotonicNow)
}

/**
 * True if the node of the copy has reported that nothing newer reaches it, or could not have reported that lately, or is
 * behind the source by their reports.
 */
const mayLack = (source: SlotReport, copy: Copy, { lease, intervalMs }: SlotMemory): boolean =>
  reportsStuck(copy) ||
  !copy.timely ||
  stepsBehind(toldOf(copy, lease), toldOf({ report: source }, lease), intervalMs) > 0

/** True if the node has memory of the slot that lacks nothing, by what it and the source have reported. */
export const hasAll = (slot: SlotMemory, node: string | undefined): boolean =>
  usableOf(slot).some(copy => copy.node === node && slot.source && !mayLack(slot.source, copy, slot))
