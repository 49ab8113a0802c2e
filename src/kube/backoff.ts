/** Exponential backoff with jitter, so that many clients of one broken server do not retry in step. */
import type { Random } from './random.ts'

export interface BackoffPolicy {
  /** Milliseconds before the first retry (before jitter). */
  readonly initialMs: number
  /** Upper bound in milliseconds; jitter never exceeds it. */
  readonly maxMs: number
  /** Growth per attempt. Default 2. */
  readonly factor?: number
  /** Share of the delay that is added at random: 0 none, 1 (default) up to double. */
  readonly jitter?: number
}

/**
 * The delay in milliseconds before retry number `attempt` (0 = the first), between initialMs and maxMs. Without
 * `random` there is no jitter.
 */
export function backoffMs(attempt: number, policy: BackoffPolicy, random?: Random): number {
  const { initialMs, maxMs, factor = 2, jitter = 1 } = policy
  // factor ** attempt overflows to Infinity for large attempts, which min() turns into maxMs.
  const base = Math.min(initialMs * factor ** attempt, maxMs)
  return Math.min(base * (1 + (random ? random.next() * jitter : 0)), maxMs)
}

export interface Backoff {
  /** The next delay in milliseconds; each call counts as one more failure. */
  next(): number
  /** Called after success: the next delay is the first again. */
  reset(): void
}

export function createBackoff(policy: BackoffPolicy, random?: Random): Backoff {
  let attempt = 0
  return {
    next: () => backoffMs(attempt++, policy, random),
    reset: () => {
      attempt = 0
    },
  }
}
