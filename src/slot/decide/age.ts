/** Decides by counters which of two memories of one slot is newer: the clocks of nodes say nothing about each other. */

/** A node's report on its newest memory of a slot. */
export interface Told {
  /** Absent: an agent of an earlier version reported it. */
  readonly epoch?: number
  readonly generation: number
  /** Wall clock of the source, ms; 0: unknown. */
  readonly takenAt: number
}

/**
 * Compares two memories; sorts the newest first. Memory without an epoch comes last, ordered by the clocks of the
 * sources: it may be of any epoch.
 */
export function newestTold(a: Told, b: Told): number {
  if (a.epoch === undefined && b.epoch === undefined) return b.takenAt - a.takenAt
  if (a.epoch === undefined || b.epoch === undefined) return a.epoch === undefined ? 1 : -1
  return b.epoch - a.epoch || b.generation - a.generation
}

export const isNewerTold = (a: Told, than: Told): boolean =>
  a.epoch === undefined || than.epoch === undefined ? a.takenAt > than.takenAt : newestTold(a, than) < 0

/**
 * Of two generations in succession the second one may be in transit. If it was taken more intervals than this after the
 * first one, it is worth waiting for: saves failed in between, or were not due.
 */
const intervalsApart = 1.5

/**
 * Returns how many generations this memory is behind the newest, if more is missing than the one generation that may be
 * in transit; else 0. Memory of an earlier epoch is at least one behind: its successor has run since. Within an epoch
 * both times come from the clock of one node, so they can be compared.
 *
 * @param intervalMs the interval that the set asks for.
 */
export function stepsBehind(memory: Told, newest: Told, intervalMs: number): number {
  if (!isNewerTold(newest, memory)) return 0
  const missing = newest.generation - memory.generation
  if (newest.epoch !== memory.epoch) return Math.max(1, missing)
  const areTimesKnown = newest.takenAt > 0 && memory.takenAt > 0
  const isLong = areTimesKnown && newest.takenAt - memory.takenAt > intervalsApart * intervalMs
  return isLong ? Math.max(1, missing) : Math.max(0, missing - 1)
}
