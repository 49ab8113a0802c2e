/** Workers that wait for an item of a queue. */
interface Taker<T> {
  readonly atLeast: number
  readonly give: (item: T | undefined) => void
}

export interface Takers<T> {
  /**
   * Waits for an item of this priority or a higher one. Resolves with undefined when the signal fires, or after
   * `dismiss`.
   */
  wait(atLeast: number, signal: AbortSignal | undefined): Promise<T | undefined>
  /** Removes the taker that gets an item of this priority, and returns its `give`; undefined: none waits for it. */
  next(priority: number): ((item: T) => void) | undefined
  /** Ends all waits. */
  dismiss(): void
}

export function createTakers<T>(): Takers<T> {
  /** Takers that wait only for the highest priorities come first. */
  let takers: readonly Taker<T>[] = []
  const remove = (taker: Taker<T>) => {
    takers = takers.filter(other => other !== taker)
  }

  return {
    wait: (atLeast, signal) =>
      new Promise(resolve => {
        const onAbort = () => {
          remove(taker)
          resolve(undefined)
        }
        const taker: Taker<T> = {
          atLeast,
          give(item) {
            signal?.removeEventListener('abort', onAbort)
            resolve(item)
          },
        }
        signal?.addEventListener('abort', onAbort, { once: true })
        takers = [...takers, taker].sort((a, b) => b.atLeast - a.atLeast)
      }),
    next(priority) {
      const taker = takers.find(({ atLeast }) => priority >= atLeast)
      if (taker) remove(taker)
      return taker?.give
    },
    dismiss() {
      for (const { give } of takers) give(undefined)
      takers = []
    },
  }
}
