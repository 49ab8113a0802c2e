import type { Rate } from '../../api/migration-controller-args.ts'
import type { Clock } from '../../kube/clock.ts'

/** A token bucket whose rate may change. Callers first read how many tokens there are, and then take them. */
export interface Tokens {
  /** Whole tokens that are there now. */
  available(rate: Rate): number
  take(count: number): void
}

export function createTokens(clock: Pick<Clock, 'monotonic'>): Tokens {
  let tokens = Number.POSITIVE_INFINITY
  let at = clock.monotonic()
  return {
    available({ perSecond, burst }) {
      const now = clock.monotonic()
      // The bucket is full at first, and after a change to a smaller one.
      tokens = Math.min(burst, tokens + ((now - at) / 1000) * perSecond)
      at = now
      // A fraction of a nanotoken is an error of rounding.
      return Math.floor(tokens + 1e-9)
    },
    take(count) {
      tokens -= count
    },
  }
}
