import type { Probe } from '../node/probe.ts'

/** Tolerance between the clocks of client and node (here the same clock) and the moments of reading them. */
const clocksMs = 50

export interface Memory {
  /** Unix ms of the first answer from the restored memory. */
  readonly firstAnswer: number
  /** How long before the kill that memory was saved, ms. */
  readonly age: number
  /** The longest wait for an answer among requests that began within a second after the kill, ms. */
  readonly slowest: number | undefined
}

/**
 * Derives the successor's memory from the client's numbers. It begins with the lowest number after the kill, because
 * the dying process may still have answered a request or two.
 * @param keptAt Unix ms of the newest memory that another node kept before the kill. Its age depends on the interval
 * and
 *   on the machine: a busy one also saves slowly.
 * @throws Error if the restored memory is older, above all if it is empty
 */
export function memoryOf(probes: readonly Probe[], killedAt: number, keptAt: number): Memory {
  const all = answered(probes)
  const after = all.filter(({ at }) => at >= killedAt)
  const [first] = after.toSorted((a, b) => a.count - b.count)
  if (first === undefined) throw new Error('the client got no answer after the kill')
  const before = all.filter(({ at, ms }) => at + ms < killedAt)
  // Every answer before the stop is part of the saved memory.
  const oldest = before.findLast(({ at, ms }) => at + ms < keptAt - clocksMs)
  if (oldest === undefined) throw new Error('the client began too late to measure the age of the memory')
  if (first.count < oldest.count)
    throw new Error(
      `an answer carried ${first.count}, which is older than ${oldest.count}, saved ${(killedAt - keptAt).toFixed(0)} ms before the kill`,
    )
  const slow = after.filter(({ at }) => at < killedAt + 1_000).map(({ ms }) => ms)
  // This request itself has added one.
  const last = before.findLast(({ count }) => count < first.count)
  return {
    firstAnswer: first.at + first.ms,
    age: last === undefined ? 0 : Math.max(0, killedAt - (last.at + last.ms)),
    slowest: slow.length === 0 ? undefined : Math.max(...slow),
  }
}

const answered = (probes: readonly Probe[]) =>
  probes
    .flatMap(({ at, ms, count }) => (count === undefined ? [] : [{ at, ms, count }]))
    .sort((a, b) => a.at - b.at)
