/**
 * Settles with the promise. Where the signal outlives the wait, nothing stays behind on it.
 * @throws what the promise does; the signal's reason as soon as it fires, at once if it already has.
 */
export function orAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const onAbort = () => reject(signal.reason)
    if (signal.aborted) onAbort()
    else signal.addEventListener('abort', onAbort, { once: true })
    // After an abort, too: a failure that comes then is heard, by nobody who still waits for it.
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', onAbort))
  })
}
