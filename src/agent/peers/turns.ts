/** Turns: so many at once for all, so many for each, the others wait in the order in which they came. */
export interface Turns {
  /**
   * Resolves when it is `key`'s turn; the function it gives ends the turn.
   * @throws the signal's reason, when it fires first
   */
  take(key: string, signal: AbortSignal): Promise<() => void>
  readonly waiting: number
}

interface Waiter {
  readonly key: string
  readonly start: () => void
}

export function createTurns(limits: { readonly forAll: number; readonly forEach: number }): Turns {
  const running = new Map<string, number>()
  let total = 0
  const queue: Waiter[] = []

  const mayStart = (key: string) => total < limits.forAll && (running.get(key) ?? 0) < limits.forEach

  const begin = (key: string): (() => void) => {
    total += 1
    running.set(key, (running.get(key) ?? 0) + 1)
    let over = false
    return () => {
      if (over) return
      over = true
      total -= 1
      const left = (running.get(key) ?? 1) - 1
      if (left === 0) running.delete(key)
      else running.set(key, left)
      // One that waits for its own key only must not hold up the others.
      const next = queue.findIndex(waiter => mayStart(waiter.key))
      if (next !== -1) queue.splice(next, 1)[0]?.start()
    }
  }

  return {
    get waiting() {
      return queue.length
    },
    take(key, signal) {
      if (signal.aborted) return Promise.reject(signal.reason)
      if (mayStart(key)) return Promise.resolve(begin(key))
      return new Promise((resolve, reject) => {
        const onAbort = () => {
          queue.splice(queue.indexOf(waiter), 1)
          reject(signal.reason)
        }
        const waiter: Waiter = {
          key,
          start: () => {
            signal.removeEventListener('abort', onAbort)
            resolve(begin(key))
          },
        }
        signal.addEventListener('abort', onAbort, { once: true })
        queue.push(waiter)
      })
    },
  }
}
