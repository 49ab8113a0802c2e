/** Additions that clients were answered, and what the states say of them. */
import type { Call } from '../../drill/history.ts'

export interface Account {
  readonly answered: number
  readonly failed: number
  /** The longest time between two answers, ms. */
  readonly gapMs: number
  /** Answered additions that the state does not have. */
  readonly lost: number
}

/**
 * Returns the account of one counter. Each answer has the number that its addition made. A number that two calls were given, and one
 * beyond the last state, is an addition that was lost: the counter continued from an older state.
 *
 * @param calls of all clients of the counter, from the first to the last
 * @param state the number that the counter has afterwards
 */
export function accountOf(calls: readonly Call[], state: number): Account {
  const answers = calls.flatMap(({ answer, end }) => (answer === undefined ? [] : [{ ...answer, end }]))
  const numbers = answers.map(({ count }) => count)
  const distinct = new Set(numbers.filter(count => count <= state))
  const ends = answers.map(({ end }) => end).sort((a, b) => a - b)
  const gaps = ends.slice(1).map((end, index) => end - (ends[index] ?? end))
  return {
    answered: answers.length,
    failed: calls.length - answers.length,
    gapMs: Math.max(0, ...gaps),
    lost: numbers.length - distinct.size,
  }
}
