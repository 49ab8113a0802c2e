import type { Clock } from '../../kube/clock.ts'

/**
 * Since when something has been seen to be so, by this process and its own clock: the clocks of nodes and of the API server
 * may be wrong. Whoever leads next begins to count again, which makes every wait longer and none shorter.
 */
export interface Since {
  /**
   * To be called once a pass over a set. What is not asked for in this pass, or does not hold any more, is forgotten.
   * @returns monotonic ms since which this holds, or undefined where it does not.
   */
  pass(setKey: string): (key: string, holds: boolean) => number | undefined
  forget(setKey: string): void
}

export function createSince(clock: Pick<Clock, 'monotonic'>): Since {
  const bySet = new Map<string, Map<string, number>>()
  return {
    pass(setKey) {
      const before = bySet.get(setKey)
      const now = new Map<string, number>()
      bySet.set(setKey, now)
      return (key, holds) => {
        if (!holds) return undefined
        const at = now.get(key) ?? before?.get(key) ?? clock.monotonic()
        now.set(key, at)
        return at
      }
    },
    forget: setKey => void bySet.delete(setKey),
  }
}
