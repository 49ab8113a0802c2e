/** How a pass ended, as the controller judges it. */
import { isKubeError } from './errors.ts'
import { type Reconcile, type Result, RetryLater, TerminalError } from './reconcile.ts'
import { mustStopNow } from './stop.ts'

/** Fired by the controller itself: the pass took longer than `timeoutMs`. */
export class PassTimeout extends Error {
  override readonly name = 'PassTimeout'
}

export type Outcome =
  | { readonly type: 'success' }
  | {
      readonly type: 'later'
      readonly afterMs: number | 'backoff'
      readonly priority?: number | undefined
      readonly reason?: string
    }
  | { readonly type: 'stopped' }
  | { readonly type: 'terminal'; readonly error: TerminalError }
  | {
      readonly type: 'error' | 'timeout' | 'panic'
      readonly error: unknown
      /** The time at which the pass itself wants to retry. */
      readonly again?: { readonly afterMs: number; readonly priority: number | undefined }
    }

export type Attempt =
  | { readonly ok: true; readonly result: Result }
  | { readonly ok: false; readonly error: unknown }

/** Runs it and never rejects, even if it throws before its first await. */
export async function attempt(run: () => ReturnType<Reconcile>): Promise<Attempt> {
  try {
    return { ok: true, result: (await run()) ?? {} }
  } catch (error) {
    return { ok: false, error }
  }
}

/** @param ended why the pass's signal fired, if it did. */
export function outcomeOf(attempt: Attempt, ended: unknown): Outcome {
  if (attempt.ok) {
    const { requeueAfterMs: afterMs, priority, error } = attempt.result
    if (error === undefined)
      return afterMs === undefined ? { type: 'success' } : { type: 'later', afterMs, priority }
    const again = afterMs === undefined ? {} : { again: { afterMs, priority } }
    return { type: isBug(error) ? 'panic' : 'error', error, ...again }
  }
  const { error } = attempt
  if (error instanceof RetryLater) return { type: 'later', afterMs: error.afterMs, reason: error.message }
  if (error instanceof TerminalError) return { type: 'terminal', error }
  if (ended instanceof PassTimeout) return { type: 'timeout', error }
  // A pass may throw StopNow before its own signal has fired.
  if (ended !== undefined || mustStopNow(error)) return { type: 'stopped' }
  return { type: isBug(error) ? 'panic' : 'error', error }
}

/** The kit's own errors report failures of the outside world; the code did not expect any other error. */
function isBug(error: unknown): boolean {
  if (error instanceof AggregateError) return error.errors.length === 0 || error.errors.some(isBug)
  return !isKubeError(error)
}

/** The longest wait that a server asked for, in milliseconds. */
export function retryAfterMs(error: unknown): number {
  const errors: unknown[] = error instanceof AggregateError ? error.errors : [error]
  return Math.max(0, ...errors.map(each => (isKubeError(each) ? (each.retryAfterMs ?? 0) : 0)))
}
