import type { Clock } from '../../kube/clock.ts'

/**
 * Records since when each condition of one set has held, as seen by this process and by its own clock: the clocks of nodes and of the
 * API server may be wrong. The next leader starts to count from zero, which makes every wait longer and none shorter.
 */
export interface Since {
  /**
   * To be called once per pass. Keys that this pass does not ask for, or that do not hold any more, are
   * forgotten.
   * @returns monotonic ms since which a condition holds, or undefined if it does not hold.
   */
  pass(): (key: string, holds: boolean) => number | undefined
}

export function createSince(clock: Pick<Clock, 'monotonic'>): Since {
  let last: ReadonlyMap<string, number> = new Map()
  return {
    pass() {
      const before = last
      const now = new Map<string, number>()
      last = now
      return (key, holds) => {
        if (!holds) return undefined
        const at = now.get(key) ?? before.get(key) ?? clock.monotonic()
        now.set(key, at)
        return at
      }
    },
  }
}
