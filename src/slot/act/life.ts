/** A signal for an operation and the background work that it starts. */
export interface Life {
  /** Fires when one of the parents fires, until the end. */
  readonly signal: AbortSignal
  /** Delays the end until `work` is done. */
  during<T>(work: () => Promise<T>): Promise<T>
  end(): void
}

/** Not AbortSignal.any: a parent that lasts for days would accumulate a dependent signal with every pass. */
export function createLife(parents: readonly AbortSignal[]): Life {
  const own = new AbortController()
  let running = 1
  const links = parents.map(parent => ({ parent, onAbort: () => own.abort(parent.reason) }))
  for (const { parent, onAbort } of links) {
    if (parent.aborted) onAbort()
    else parent.addEventListener('abort', onAbort, { once: true })
  }
  const end = () => {
    running -= 1
    if (running > 0) return
    for (const { parent, onAbort } of links) parent.removeEventListener('abort', onAbort)
  }
  return {
    signal: own.signal,
    async during(work) {
      running += 1
      try {
        return await work()
      } finally {
        end()
      }
    },
    end,
  }
}
