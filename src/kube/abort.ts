/**
 * Settles with the promise. Without a signal it is the promise; where it outlives the wait, nothing stays behind on it.
 * @throws what the promise does; the signal's reason as soon as it fires, at once if it already has.
 */
export function unlessAborted<T>(promise: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return promise
  return new Promise((resolve, reject) => {
    const onAbort = () => reject(signal.reason)
    if (signal.aborted) onAbort()
    else signal.addEventListener('abort', onAbort, { once: true })
    // After an abort, too: a failure that comes then is heard, by nobody who still waits for it.
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', onAbort))
  })
}
