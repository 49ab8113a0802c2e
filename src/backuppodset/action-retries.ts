import { backoffMs } from '../kube/backoff.ts'
import type { Clock } from '../kube/clock.ts'
import { isKubeError } from '../kube/errors.ts'
import type { ActionType } from './plan.ts'

/** An operation of a pass that can fail: an action or the status write. */
export type Attempt =
  | { readonly what: ActionType | 'status'; readonly type: 'failed'; readonly error: unknown }
  | { readonly what: ActionType | 'status'; readonly type: 'done' }

/**
 * Counts consecutive failures of each kind of action, for one set. An action that always fails, such as a creation
 * over quota, must delay neither the first retry of another kind nor anything that a set does at a set time.
 */
export interface ActionRetries {
  /** @returns ms until the next retry; undefined: nothing has failed. */
  note(attempts: readonly Attempt[]): number | undefined
}

/** The longest pause is the resync interval of an idle set. */
export const failurePauses = Object.freeze({ initialMs: 5, maxMs: 30_000, jitter: 0 })

interface Known {
  readonly count: number
  /**
   * Monotonic ms until which another failure does not count, since an event triggered that pass before the retry was
   * due.
   */
  readonly until: number
}

export function createActionRetries(clock: Clock): ActionRetries {
  const known = new Map<Attempt['what'], Known>()
  return {
    note(attempts) {
      const now = clock.monotonic()
      const failed = new Map<Attempt['what'], number>()
      for (const { what, ...attempt } of attempts)
        if (attempt.type === 'failed')
          failed.set(what, Math.max(failed.get(what) ?? 0, askedMs(attempt.error)))
      for (const { what } of attempts) if (!failed.has(what)) known.delete(what)
      for (const [what, atLeastMs] of failed) {
        const before = known.get(what)
        if (before !== undefined && now < before.until) continue
        const count = (before?.count ?? 0) + 1
        const pauseMs = Math.max(backoffMs(count - 1, failurePauses), atLeastMs)
        known.set(what, { count, until: now + pauseMs })
      }
      const times = [...failed.keys()].flatMap(what => known.get(what)?.until ?? [])
      return times.length === 0 ? undefined : Math.max(0, Math.min(...times) - now)
    },
  }
}

/** Retry-After in ms. */
const askedMs = (error: unknown): number => (isKubeError(error) ? (error.retryAfterMs ?? 0) : 0)
