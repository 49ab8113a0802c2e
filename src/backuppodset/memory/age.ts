import type { SlotLease } from '../../api/slot-lease.ts'
import { newestTold, type Told } from '../../succession/age.ts'
import type { Copy } from './view.ts'

/** Clocks of nodes that differ from ours by more are not believed, ms. */
const plausibleMs = 60_000

/**
 * When the memory of this copy was the primary's, monotonic ms. At the latest when this process heard of it, less the
 * time that the source measured for its way; the times that nodes write say it better, unless their clocks are wrong.
 */
export function takenAt(
  { report, seenAt }: Copy,
  { now, monotonicNow }: { readonly now: number; readonly monotonicNow: number },
): number {
  const atLatest = Math.min(monotonicNow, seenAt - (report.pipelineSeconds ?? 0) * 1000)
  const told = monotonicNow - (now - Date.parse(report.takenAt ?? ''))
  return told <= atLatest && told > atLatest - plausibleMs ? told : atLatest
}

/** What a copy is compared by. An agent of an earlier version tells no epoch, and mostly means the present one. */
export const toldOf = ({ report }: Copy, { epoch }: Pick<SlotLease, 'epoch'>): Told => ({
  epoch: report.epoch ?? epoch,
  generation: report.generation,
  takenAt: Date.parse(report.takenAt ?? '') || 0,
})

/** Orders copies of a slot, the newest first. */
export const newestOf =
  (lease: Pick<SlotLease, 'epoch'>) =>
  (a: Copy, b: Copy): number =>
    newestTold(toldOf(a, lease), toldOf(b, lease))

/** The same as `takenAt`, by the wall clock, RFC 3339. To a tenth of a second: the same one in each pass. */
export const savedAt = (copy: Copy, times: { readonly now: number; readonly monotonicNow: number }): string =>
  new Date(Math.round((times.now - (times.monotonicNow - takenAt(copy, times))) / 100) * 100).toISOString()
