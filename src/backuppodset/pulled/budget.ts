/**
 * What this process spends on pulled states, of all sets together: whoever writes a set decides how large they are, and
 * an operator that runs out of memory leaves every set of the cluster without failover.
 */

import { mostOf } from '../../kube/fair-share.ts'

/** A part of the budget, taken bit by bit. */
export interface Reservation {
  /** Takes so many bytes more. False: there is no room for them, and none were taken. */
  take(bytes: number): boolean
  /** Gives back all but so many bytes. */
  keep(bytes: number): void
  release(): void
}

export interface StateBudget {
  /** @param use `renewed`: in the place of a state that is kept, or for the time of a transfer only. Default `kept`. */
  reserve(namespace: string, use?: Use): Reservation
  /** Bytes that are taken now. */
  readonly used: number
  readonly bytes: number
}

type Use = 'kept' | 'renewed'

/**
 * Of what the others leave, see `mostOf`: with one namespace that holds all it may, the next one finds half of the budget,
 * and the third a quarter. A part of the whole would be gone with the second namespace; an even part for each would mean to take states from those who have more, and with them the
 * failover of a tenant, because another one has come.
 *
 * A newer state is taken beside the one that it replaces. A namespace that has its full part still has to be able to do
 * that: otherwise whoever comes after it makes its states grow old.
 */
const shares: Readonly<Record<Use, number>> = { kept: 1 / 2, renewed: 3 / 4 }

/** @param bytes in all. What is kept already is never given up for something else. */
export function createStateBudget(bytes: number): StateBudget {
  const byNamespace = new Map<string, number>()
  let used = 0
  return {
    bytes,
    get used() {
      return used
    },
    reserve(namespace, use = 'kept') {
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
          const own = byNamespace.get(namespace) ?? 0
          const isRoom = own + more <= mostOf(bytes, used - own, shares[use])
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
