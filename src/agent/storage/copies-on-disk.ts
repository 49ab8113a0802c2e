import type { SlotLease } from '../../api/slot-lease.ts'
import type { GenerationDisk, Sealed } from '../../checkpoint/disk/disk.ts'
import { deriveKey, type GenerationKey, type NodeParts } from '../../checkpoint/disk/generation-key.ts'

/** Keys of the files of one slot. */
export interface Keys {
  readonly current: GenerationKey
  /** The key of the version before, which has no part of the node. */
  readonly before: GenerationKey
}

export type Copy = Sealed & { readonly key: GenerationKey }

export interface CopiesOnDisk {
  /** @returns undefined if the slot has no key. */
  keysOf(lease: SlotLease, signal: AbortSignal): Promise<Keys | undefined>
  /** Returns what the disk has of a slot, newest first; undefined if the slot has no key. */
  of(lease: SlotLease, signal: AbortSignal): Promise<readonly Copy[] | undefined>
}

/**
 * Finds the files of slots by the keys of this node.
 * @param onExchange called when the parts of keys have changed: files of the earlier ones open no more.
 */
export function createCopiesOnDisk(
  disk: Pick<GenerationDisk, 'of'>,
  keyParts: (signal: AbortSignal) => Promise<NodeParts>,
  onExchange: () => void,
): CopiesOnDisk {
  let parts: NodeParts | undefined

  async function keysOf(lease: SlotLease, signal: AbortSignal): Promise<Keys | undefined> {
    if (lease.seal === undefined) return undefined
    const now = await keyParts(signal)
    if (parts !== undefined && !isSame(parts, now)) onExchange()
    parts = now
    return {
      current: deriveKey(now, lease.seal, lease),
      before: deriveKey({ ...now, node: undefined }, lease.seal, lease),
    }
  }

  return {
    keysOf,
    async of(lease, signal) {
      const keys = await keysOf(lease, signal)
      if (keys === undefined) return undefined
      const copies: Copy[] = []
      for (const key of [keys.current, keys.before])
        for (const sealed of await disk.of(lease, key)) copies.push({ ...sealed, key })
      return copies.sort((a, b) => b.epoch - a.epoch || b.generation - a.generation)
    },
  }
}

const isSame = (a: NodeParts, b: NodeParts): boolean =>
  Buffer.from(a.agents).equals(b.agents) && Buffer.from(a.node ?? []).equals(b.node ?? Buffer.alloc(0))
