/** Decides by counters which of two memories of one slot is newer: the clocks of nodes say nothing about each other. */

/** A node's report on its newest memory of a slot. */
export interface Told {
  /** Absent: an agent of an earlier version reported it. */
  readonly epoch?: number
  readonly generation: number
  /** Wall clock of the source, ms. */
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
 * Returns how many generations this memory is behind the newest, if more is missing than the one generation that may be
 * in transit; else 0. Memory of an earlier epoch is at least one behind: its successor has run since.
 */
export function stepsBehind(memory: Told, newest: Told): number {
  if (!isNewerTold(newest, memory)) return 0
  const missing = newest.generation - memory.generation
  return newest.epoch === memory.epoch ? Math.max(0, missing - 1) : Math.max(1, missing)
}
