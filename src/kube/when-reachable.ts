import { createBackoff } from './backoff.ts'
import { type Clock, elapses } from './clock.ts'
import { isKubeError } from './errors.ts'
import type { Log } from './log.ts'
import type { Random } from './random.ts'

export interface WhenReachableOptions {
  readonly clock: Clock
  readonly random: Random
  readonly log: Log
  readonly signal: AbortSignal
}

/**
 * Repeats a call until the API server answers it: a process that starts during an outage waits instead of crashing.
 * @throws the signal's reason; any error of the call that is an answer.
 */
export async function whenReachable<T>(
  ask: () => Promise<T>,
  { clock, random, log, signal }: WhenReachableOptions,
): Promise<T> {
  const pauses = createBackoff({ initialMs: 500, maxMs: 5_000 }, random)
  for (;;) {
    signal.throwIfAborted()
    try {
      return await ask()
    } catch (error) {
      signal.throwIfAborted()
      if (!isKubeError(error, 'Unavailable', 'Timeout', 'Throttled')) throw error
      log.warn({ err: error }, 'the API server does not answer yet')
    }
    await elapses(clock, pauses.next(), signal)
  }
}
