/** The contract between a controller and its reconcile function: what one pass is given, and how it may end. */
import type { Log } from './log.ts'

export interface Result {
  /** Run again after this many milliseconds, unless an event comes first. 0: at once. */
  readonly requeueAfterMs?: number | undefined
  /** Priority of that run. Default: this pass's priority if it comes within a second, else 0. */
  readonly priority?: number | undefined
  /**
   * An error in a pass that still ran to its end. It is logged and counted as if the pass had thrown it. With
   * `requeueAfterMs` the pass itself has chosen when to retry, so that a failure disables no timer; without it the key
   * backs off.
   */
  readonly error?: unknown
}

/** Thrown when a retry cannot help (a bad spec). The key rests until something about it changes. */
export class TerminalError extends Error {
  override readonly name = 'TerminalError'
}

/**
 * Thrown when nothing is wrong, but nothing more can be done now (CloudNativePG's ErrNextLoop). Retries after this many
 * milliseconds; `'backoff'` retries soon, and later each time in a row, for waits of unknown length.
 */
export class RetryLater extends Error {
  override readonly name = 'RetryLater'
  /** Milliseconds. */
  readonly afterMs: number | 'backoff'

  constructor(afterMs: number | 'backoff', reason: string) {
    super(reason)
    this.afterMs = afterMs
  }
}

export interface ReconcileContext {
  /** Random, one for each pass; every log line of the pass has it as `reconcileID`. */
  readonly reconcileId: string
  readonly log: Log
  /** Fires when this pass has to end: its timeout, the end of the drain, leadership lost. */
  readonly signal: AbortSignal
  /** The priority under which the key was queued. */
  readonly priority: number
  /**
   * True when this pass should end at its next good moment, although it may continue: the controller is stopping, or
   * the key was added again with a higher priority. Long passes check it between two batches of requests.
   */
  readonly mustYield: () => boolean
}

export type Reconcile = (
  key: string,
  context: ReconcileContext,
) => Promise<Result | undefined> | Promise<void>
