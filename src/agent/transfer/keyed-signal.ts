/**
 * Wakes the tasks that wait for news of a name. News from before a wait began does not count: a caller that reads the
 * state and then waits, without an await in between, misses none.
 */
export interface KeyedSignal {
  tell(name: string): void
  /** @throws the signal's reason. */
  wait(name: string, signal: AbortSignal): Promise<void>
}

export function createKeyedSignal(): KeyedSignal {
  const waiting = new Map<string, Set<() => void>>()
  return {
    tell(name) {
      const waiters = waiting.get(name)
      waiting.delete(name)
      for (const wake of waiters ?? []) wake()
    },
    wait(name, signal) {
      return new Promise((resolve, reject) => {
        if (signal.aborted) return reject(signal.reason)
        const waiters = waiting.get(name) ?? new Set()
        waiting.set(name, waiters)
        const onAbort = () => {
          waiters.delete(wake)
          if (waiters.size === 0 && waiting.get(name) === waiters) waiting.delete(name)
          reject(signal.reason)
        }
        const wake = () => {
          signal.removeEventListener('abort', onAbort)
          resolve()
        }
        signal.addEventListener('abort', onAbort, { once: true })
        waiters.add(wake)
      })
    },
  }
}
