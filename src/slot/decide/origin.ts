/** Where memory may come from: the pod and the node that the Lease of its slot names. */
import { isSameSlot, type SlotKey } from '../../api/slot-key.ts'
import type { SlotLease } from '../../api/slot-lease.ts'
import { signerFault } from './signers.ts'

export interface Origin {
  readonly slot: SlotKey
  readonly epoch: number
  readonly source: { readonly podUid: string; readonly node: string }
  /** Fingerprint of the key that has signed all fields above; undefined: no signature. */
  readonly signer: string | undefined
}

/**
 * Returns the fault in the origin that a generation names; undefined if there is none. For a past epoch the Lease tells
 * only whose key signed then: such a generation is older than any of the present epoch. A generation of a future epoch
 * would be preferred to all true ones.
 *
 * @param lease of that slot, as it is now; undefined: there is none.
 */
export function originFault(
  { slot, epoch, source, signer }: Origin,
  lease: SlotLease | undefined,
): string | undefined {
  if (lease === undefined || !isSameSlot(slot, lease)) return 'no Lease names this incarnation of the slot'
  if (epoch > lease.epoch) return `epoch ${epoch}, but the Lease is at ${lease.epoch}`
  if (epoch < lease.epoch) return signerFault(lease, epoch, signer)
  if (source.podUid !== lease.holder.uid)
    return `pod ${source.podUid}, but the Lease names ${lease.holder.uid}`
  if (source.node !== lease.node) return `node ${source.node}, but the Lease names ${lease.node ?? 'none'}`
  return signerFault(lease, epoch, signer)
}

/**
 * True if the Lease of a slot names this node as the primary's, as a holder, or as a node that still keeps memory.
 * Reports of any other node on the slot are ignored, and no agent fetches memory from it: each node writes its own
 * report, and no other instance checks it.
 */
export const isNamed = (lease: Pick<SlotLease, 'node' | 'holders' | 'kept'>, name: string): boolean =>
  isWanted(lease, name) || lease.kept?.includes(name) === true

/** Returns all nodes that the Lease of a slot names. */
export const namedBy = ({
  node,
  holders,
  kept = [],
}: Pick<SlotLease, 'node' | 'holders' | 'kept'>): readonly string[] => [
  ...new Set([...(node === undefined ? [] : [node]), ...holders, ...kept]),
]

/** True if the memory of a slot is to be on this node. */
export const isWanted = ({ node, holders }: Pick<SlotLease, 'node' | 'holders'>, name: string): boolean =>
  node === name || holders.includes(name)
