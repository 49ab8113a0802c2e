/** Repeatable choices: the same seed draws the same. */
import { seededRandom } from '../src/kube/random.ts'

export interface Random {
  /** A whole number below `below`. */
  below(below: number): number
  between(from: number, to: number): number
  /** @throws Error if there is nothing to choose from */
  of<T>(choices: readonly T[]): T
}

export function randomOf(seed: number): Random {
  const { next } = seededRandom(seed)
  const below = (limit: number) => Math.floor(next() * limit)
  return {
    below,
    between: (from, to) => from + next() * (to - from),
    of: choices => {
      const chosen = choices[below(choices.length)]
      if (chosen === undefined) throw new Error('nothing to choose from')
      return chosen
    },
  }
}
