/** A signal for a piece of work and for what it leaves running behind it. */
export interface Life {
  /** Fires when one of the parents does, until the end. */
  readonly signal: AbortSignal
  /** The end waits for this as well. */
  during<T>(work: () => Promise<T>): Promise<T>
  end(): void
}

/** Not AbortSignal.any: a parent that lasts for days would collect a dependant with every pass. */
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
