import { backoffMs } from '../kube/backoff.ts'
import type { Clock } from '../kube/clock.ts'
import { isKubeError } from '../kube/errors.ts'
import type { ActionType } from './plan.ts'

/** What can fail in a pass: an action, or the writing of the status. */
export type Attempt =
  | { readonly what: ActionType | 'status'; readonly type: 'failed'; readonly error: unknown }
  | { readonly what: ActionType | 'status'; readonly type: 'done' }

/**
 * How often each kind of action has failed in a row, set by set. One that always fails, as creations do under a quota,
 * delays neither the first repetition of another kind nor anything that a set does at a certain time.
 */
export interface Failures {
  /** @returns ms after which what failed is to be tried again; undefined: nothing has failed. */
  note(setKey: string, attempts: readonly Attempt[]): number | undefined
  forget(setKey: string): void
}

/** The longest pause is that of a pass that nothing calls for. */
export const failurePauses = Object.freeze({ initialMs: 5, maxMs: 30_000, jitter: 0 })

interface Known {
  readonly count: number
  /** Monotonic ms before which a failure is no further one: an event has brought this pass before its time. */
  readonly until: number
}

export function createFailures(clock: Clock): Failures {
  const sets = new Map<string, Map<Attempt['what'], Known>>()
  return {
    note(setKey, attempts) {
      const known = sets.get(setKey) ?? new Map<Attempt['what'], Known>()
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
      if (known.size === 0) sets.delete(setKey)
      else sets.set(setKey, known)
      const times = [...failed.keys()].flatMap(what => known.get(what)?.until ?? [])
      return times.length === 0 ? undefined : Math.max(0, Math.min(...times) - now)
    },
    forget: setKey => sets.delete(setKey),
  }
}

/** Retry-After, ms. */
const askedMs = (error: unknown): number => (isKubeError(error) ? (error.retryAfterMs ?? 0) : 0)
