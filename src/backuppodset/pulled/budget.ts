/**
 * What this process spends on pulled states, of all sets together: whoever writes a set decides how large they are, and
 * an operator that runs out of memory leaves every set of the cluster without failover.
 */

/** A part of the budget, taken bit by bit. */
export interface Reservation {
  /** Takes so many bytes more. False: there is no room for them, and none were taken. */
  take(bytes: number): boolean
  /** Gives back all but so many bytes. */
  keep(bytes: number): void
  release(): void
}

export interface StateBudget {
  reserve(namespace: string): Reservation
  /** Bytes that are taken now. */
  readonly used: number
  readonly bytes: number
}

/** No namespace takes more than this part of it. */
const share = 0.5

/** @param bytes in all. First come, first served: what is kept already is never given up for something else. */
export function createStateBudget(bytes: number): StateBudget {
  const byNamespace = new Map<string, number>()
  let used = 0
  return {
    bytes,
    get used() {
      return used
    },
    reserve(namespace) {
      let taken = 0
      const change = (by: number) => {
        taken += by
        used += by
        const now = (byNamespace.get(namespace) ?? 0) + by
        if (now === 0) byNamespace.delete(namespace)
        else byNamespace.set(namespace, now)
      }
      return {
        take(more) {
          const isRoom = used + more <= bytes && (byNamespace.get(namespace) ?? 0) + more <= bytes * share
          if (isRoom) change(more)
          return isRoom
        },
        keep: left => change(Math.min(left, taken) - taken),
        release: () => change(-taken),
      }
    },
  }
}

/** A third of the memory that this process may use, and not more than 1 GiB where nothing limits it. */
export const defaultStateBudget = (): number =>
  Math.floor(Math.min(process.constrainedMemory() || Number.POSITIVE_INFINITY, 3 * 2 ** 30) / 3)
