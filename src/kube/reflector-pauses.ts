/** The pauses of a reflector after failures. */
import { type Backoff, createBackoff } from './backoff.ts'
import { type Clock, elapses } from './clock.ts'
import type { Random } from './random.ts'

export interface Pauses {
  readonly ordinary: Backoff
  /** After a refusal: only a change of rights or tokens helps, and every try is a line in the audit log. */
  readonly refused: Backoff
  /**
   * Waits for this many milliseconds, or until the signal fires.
   * @param mayBeCut whether `kick` may end the pause. Default true.
   */
  rest(ms: number, signal: AbortSignal, mayBeCut?: boolean): Promise<void>
  /** Ends a pause that may be cut: the failure that it follows is over. */
  kick(): void
}

export function createPauses(clock: Clock, random: Random): Pauses {
  const ordinary = createBackoff({ initialMs: 800, maxMs: 30_000 }, random)
  const refused = createBackoff({ initialMs: 5_000, maxMs: 60_000 }, random)
  let endPause: (() => void) | undefined
  return {
    ordinary,
    refused,
    async rest(ms, signal, mayBeCut = true) {
      const over = new AbortController()
      const cut = () => over.abort()
      if (mayBeCut)
        endPause = () => {
          ordinary.reset()
          cut()
        }
      if (signal.aborted) cut()
      else signal.addEventListener('abort', cut, { once: true })
      await elapses(clock, ms, over.signal)
      endPause = undefined
      signal.removeEventListener('abort', cut)
    },
    kick: () => endPause?.(),
  }
}
