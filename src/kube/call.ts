/** The lifetime of one API call: the signals that end it, and its deadline. */
import type { Clock } from './clock.ts'
import { KubeError } from './errors.ts'

export interface Call {
  /** Fires with a KubeError Timeout at the deadline, with the parent's reason when a parent fires. */
  readonly signal: AbortSignal
  /** On the monotonic clock, in milliseconds. */
  readonly deadline: number
  /** The deadline is met: from now on only the parents end the call. */
  met(): void
  /** Releases the timer and the listeners on the parents. */
  end(): void
}

export function openCall(
  clock: Clock,
  timeoutMs: number,
  parents: readonly (AbortSignal | undefined)[],
): Call {
  const call = new AbortController()
  const deadlineMet = new AbortController()
  const links = parents
    .filter(parent => parent !== undefined)
    .map(parent => ({ parent, onAbort: () => call.abort(parent.reason) }))

  // Not AbortSignal.any: a signal that lives as long as the process would collect dependants with every call.
  for (const { parent, onAbort } of links) {
    if (parent.aborted) onAbort()
    else parent.addEventListener('abort', onAbort, { once: true })
  }
  clock.sleep(timeoutMs, deadlineMet.signal).then(
    () => call.abort(new KubeError('Timeout', `no answer within ${timeoutMs} ms`)),
    () => {
      // The deadline was met.
    },
  )
  return {
    signal: call.signal,
    deadline: clock.monotonic() + timeoutMs,
    met: () => deadlineMet.abort(),
    end() {
      deadlineMet.abort()
      for (const { parent, onAbort } of links) parent.removeEventListener('abort', onAbort)
    },
  }
}
