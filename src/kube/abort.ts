import type { Clock } from './clock.ts'

/**
 * Settles with the promise. Without a signal it returns the promise itself. A signal that outlives the wait keeps no
 * listener of it.
 * @throws the error of the promise; the signal's reason as soon as it fires, at once if it already has.
 */
export function unlessAborted<T>(promise: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return promise
  return new Promise((resolve, reject) => {
    const onAbort = () => reject(signal.reason)
    if (signal.aborted) onAbort()
    else signal.addEventListener('abort', onAbort, { once: true })
    // Also after an abort: otherwise a later failure of the promise would be an unhandled rejection.
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', onAbort))
  })
}

/**
 * Returns a controller that also fires when `signal` does, until it is disposed: `AbortSignal.any` would leave a
 * dependant on a signal that lives as long as the process.
 */
export function linkedTo(signal: AbortSignal): AbortController & Disposable {
  const controller = new AbortController()
  const onAbort = () => controller.abort(signal.reason)
  if (signal.aborted) onAbort()
  else signal.addEventListener('abort', onAbort, { once: true })
  return Object.assign(controller, {
    [Symbol.dispose]: () => signal.removeEventListener('abort', onAbort),
  })
}

/** Returns a signal that fires after so long, with an error, unless it is disposed before. */
export function abortAfter(
  clock: Pick<Clock, 'sleep'>,
  ms: number,
  reason: () => Error,
): { readonly signal: AbortSignal } & Disposable {
  const late = new AbortController()
  const over = new AbortController()
  clock.sleep(ms, over.signal).then(
    () => late.abort(reason()),
    () => undefined,
  )
  return { signal: late.signal, [Symbol.dispose]: () => over.abort() }
}
