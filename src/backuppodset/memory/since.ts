import type { Clock } from '../../kube/clock.ts'

/**
 * Records since when a condition has held, as seen by this process and by its own clock: the clocks of nodes and of the
 * API server may be wrong. The next leader starts to count from zero, which makes every wait longer and none shorter.
 */
export interface Since {
  /**
   * To be called once per pass over a set. Keys that this pass does not ask for, or that do not hold any more, are
   * forgotten.
   * @returns monotonic ms since which a condition holds, or undefined if it does not hold.
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
