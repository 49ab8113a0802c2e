import type { SlotLease } from '../../api/slot-lease.ts'
import { newestTold, type Told } from './age.ts'
import type { Copy } from './memory-view.ts'

/** Clocks of nodes that differ from ours by more are not trusted, ms. */
const plausibleMs = 60_000

/**
 * Returns when the primary had the memory of this copy, monotonic ms. The latest possible time is when this process
 * heard of the copy, less the time that the source measured for its transfer. The times that nodes write are more
 * exact, unless their clocks are wrong.
 */
export function takenAt(
  { report, seenAt }: Copy,
  { now, monotonicNow }: { readonly now: number; readonly monotonicNow: number },
): number {
  const atLatest = Math.min(monotonicNow, seenAt - (report.pipelineSeconds ?? 0) * 1000)
  const told = monotonicNow - (now - Date.parse(report.takenAt ?? ''))
  return told <= atLatest && told > atLatest - plausibleMs ? told : atLatest
}

/**
 * Returns the values by which copies are compared. An agent of an earlier version reports no epoch, and mostly means
 * the present one.
 */
export const toldOf = ({ report }: Pick<Copy, 'report'>, { epoch }: Pick<SlotLease, 'epoch'>): Told => ({
  epoch: report.epoch ?? epoch,
  generation: report.generation,
  takenAt: Date.parse(report.takenAt ?? '') || 0,
})

/** Returns a comparator that sorts the copies of a slot, the newest first. */
export const newestOf =
  (lease: Pick<SlotLease, 'epoch'>) =>
  (a: Copy, b: Copy): number =>
    newestTold(toldOf(a, lease), toldOf(b, lease))

/**
 * Returns the time of `takenAt` by the wall clock, RFC 3339. Rounded to a tenth of a second, so that each pass gives
 * the same text.
 */
export const savedAt = (copy: Copy, times: { readonly now: number; readonly monotonicNow: number }): string =>
  new Date(Math.round((times.now - (times.monotonicNow - takenAt(copy, times))) / 100) * 100).toISOString()
