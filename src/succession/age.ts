/** Which of two memories of one slot is newer, by counters: the clocks of nodes say nothing about each other. */

/** What a node says of the newest memory that it has of a slot. */
export interface Told {
  /** Absent: told by an agent of an earlier version. */
  readonly epoch?: number
  readonly generation: number
  /** Wall clock of the source, ms. */
  readonly takenAt: number
}

/** The newest first. What has no epoch comes last, by the clocks of the sources: it may be anything. */
export function newestTold(a: Told, b: Told): number {
  if (a.epoch === undefined && b.epoch === undefined) return b.takenAt - a.takenAt
  if (a.epoch === undefined || b.epoch === undefined) return a.epoch === undefined ? 1 : -1
  return b.epoch - a.epoch || b.generation - a.generation
}

export const isNewerTold = (a: Told, than: Told): boolean =>
  a.epoch === undefined || than.epoch === undefined ? a.takenAt > than.takenAt : newestTold(a, than) < 0

/**
 * How many generations this memory is behind that one, where more than the one that may just be on its way is missing;
 * else 0. What was saved in an earlier epoch is at least one behind: its successor has gone on.
 */
export function stepsBehind(memory: Told, newest: Told): number {
  if (!isNewerTold(newest, memory)) return 0
  const missing = newest.generation - memory.generation
  return newest.epoch === memory.epoch ? Math.max(0, missing - 1) : Math.max(1, missing)
}
