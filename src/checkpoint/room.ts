/** The room of a store: what its generations take up, and what drafts and others have reserved. */
import { CheckpointError } from './errors.ts'
import { assertShare, mostFor, type NamespaceUse, type SharedBudget } from './namespace-share.ts'

export interface RoomOptions extends SharedBudget {
  /** Returns the bytes of the complete generations of a namespace; undefined: of all. */
  readonly bytesOf: (namespace: string | undefined) => number
}

export interface Room {
  /**
   * Reserves so many bytes in all for the one with this name: the directory of a draft, or another unique name.
   * @throws CheckpointError StoreFull. An earlier reservation then stays.
   */
  reserve(name: string, namespace: string, bytes: number): void
  reservedBy(name: string): number
  release(name: string): void
  /** Bytes that a namespace could have in addition, beside those that `name` has reserved. */
  of(namespace: string, name?: string): number
  /** Bytes that are neither taken nor reserved. */
  left(): number
}

export function createRoom({ budget, share, bytesOf }: RoomOptions): Room {
  const reserved = new Map<string, { readonly namespace: string; readonly bytes: number }>()

  /** Bytes of generations, and of all reservations but one; undefined: those of all namespaces. */
  function taken(except?: string, namespace?: string): number {
    let sum = bytesOf(namespace)
    for (const [name, of] of reserved)
      if (name !== except && (namespace === undefined || of.namespace === namespace)) sum += of.bytes
    return sum
  }

  function use(namespace: string, except?: string): NamespaceUse {
    const own = taken(except, namespace)
    return { namespace, own, others: taken(except) - own }
  }

  return {
    reserve(name, namespace, bytes) {
      const others = taken(name)
      if (others + bytes > budget || others >= budget)
        throw new CheckpointError(
          'StoreFull',
          `${bytes} more bytes do not fit: ${others} of ${budget} are in use or reserved`,
        )
      assertShare(bytes, use(namespace, name), { budget, share }, 'StoreFull')
      reserved.set(name, { namespace, bytes })
    },
    reservedBy: name => reserved.get(name)?.bytes ?? 0,
    release: name => void reserved.delete(name),
    of(namespace, name) {
      const { own, others } = use(namespace, name)
      const most = mostFor({ namespace, own, others }, { budget, share })
      return Math.max(0, Math.min(budget - taken(name), most - own))
    },
    left: () => budget - taken(),
  }
}
