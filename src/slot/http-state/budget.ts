/**
 * The memory that this process spends on pulled states of all sets together. Users who write sets decide how large
 * these states are, and an operator that runs out of memory leaves every set of the cluster without failover.
 */

import { mostOf } from '../../kube/fair-share.ts'

/** A part of the budget, taken in steps. */
export interface Reservation {
  /** Takes this many bytes more. Returns false, and takes none, if there is no room for them. */
  take(bytes: number): boolean
  /** Releases all but this many bytes. */
  keep(bytes: number): void
  release(): void
}

export interface StateBudget {
  /** @param use `renewed`: to replace a state that is kept, or only for the time of a transfer. Default `kept`. */
  reserve(namespace: string, use?: Use): Reservation
  /** Bytes taken now. */
  readonly used: number
  readonly bytes: number
}

type Use = 'kept' | 'renewed'

/**
 * A namespace's share of the bytes that other namespaces leave free, see `mostOf`. If one namespace holds all it may,
 * the next gets half of the budget, and the third a quarter. With a share of the whole budget, the second namespace
 * would use up the rest. Equal shares would mean to take states, and with them the failover, from one tenant because
 * another has come.
 *
 * While a newer state is transferred, the state that it replaces is still kept. A namespace with a full share must have
 * room for both; otherwise a later namespace would prevent the renewal of its states.
 */
const shares: Readonly<Record<Use, number>> = { kept: 1 / 2, renewed: 3 / 4 }

/** @param bytes in all. A kept state is never evicted for another one. */
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

/** A third of the memory that this process may use; at most 1 GiB, also if nothing limits it. */
export const defaultStateBudget = (): number =>
  Math.floor(Math.min(process.constrainedMemory() || Number.POSITIVE_INFINITY, 3 * 2 ** 30) / 3)
