/** How often a key may act: a token bucket for each key. */
import type { Clock } from './clock.ts'

/** Returns a function that says whether one more is allowed now: `burst` at once, then one per `refillMs`. */
export function createTokenBuckets(clock: Clock, burst: number, refillMs: number): (key: string) => boolean {
  /** When the bucket will be full again, in monotonic milliseconds; in order of last use. */
  const fullAt = new Map<string, number>()
  return key => {
    const now = clock.monotonic()
    for (const [other, at] of fullAt) {
      if (at > now) break
      fullAt.delete(other)
    }
    const at = Math.max(fullAt.get(key) ?? now, now)
    const spent = (at - now) / refillMs
    if (spent > burst - 1) return false
    fullAt.delete(key)
    fullAt.set(key, at + refillMs)
    return true
  }
}
