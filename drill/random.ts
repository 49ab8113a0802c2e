/** Repeatable randomness: the same seed draws the same numbers. */

export interface Random {
  /** At least 0, below 1. */
  next(): number
  /** A whole number below `below`. */
  below(below: number): number
  between(from: number, to: number): number
  /** @throws Error if there is nothing to choose from */
  of<T>(choices: readonly T[]): T
}

/** Mulberry32. */
export function randomOf(seed: number): Random {
  let state = seed >>> 0
  const next = () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
  const below = (limit: number) => Math.floor(next() * limit)
  return {
    next,
    below,
    between: (from, to) => from + next() * (to - from),
    of: choices => {
      const chosen = choices[below(choices.length)]
      if (chosen === undefined) throw new Error('nothing to choose from')
      return chosen
    },
  }
}
