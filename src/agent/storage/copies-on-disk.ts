import type { SlotLease } from '../../api/slot-lease.ts'
import type { GenerationDisk, Sealed } from '../../checkpoint/disk/disk.ts'
import { deriveKey, type GenerationKey, type KeyParts } from '../../checkpoint/disk/generation-key.ts'
import { newestFirst } from '../../checkpoint/manifest.ts'

/** Keys of the files of one slot. */
export interface Keys {
  readonly current: GenerationKey
  /** Those of earlier keys of the operator, and of the version before, whose keys have no part of the node. */
  readonly before: readonly GenerationKey[]
}

export type Copy = Sealed & {
  readonly key: GenerationKey
  /** Written with an earlier key. */
  readonly isBefore: boolean
}

export interface CopiesOnDisk {
  /** @returns undefined if the slot has no key. */
  keysOf(lease: SlotLease, signal: AbortSignal): Promise<Keys | undefined>
  /** Returns what the disk has of a slot, newest first; undefined if the slot has no key. */
  of(lease: SlotLease, signal: AbortSignal): Promise<readonly Copy[] | undefined>
  /** How often new files have got other keys: what was found before may have been removed since. */
  readonly exchanges: number
}

/**
 * Finds the files of slots by the keys of this node.
 * @param onExchange called when new files get other keys than before.
 */
export function createCopiesOnDisk(
  disk: Pick<GenerationDisk, 'of'>,
  keyParts: (signal: AbortSignal) => Promise<KeyParts>,
  onExchange: () => void,
): CopiesOnDisk {
  let parts: KeyParts | undefined
  let exchanges = 0

  async function keysOf(lease: SlotLease, signal: AbortSignal): Promise<Keys | undefined> {
    const { seal } = lease
    if (seal === undefined) return undefined
    const now = await keyParts(signal)
    const isExchange = parts !== undefined && !isSame(parts, now)
    parts = now
    if (isExchange) {
      exchanges += 1
      onExchange()
    }
    const { agents } = now
    const [current, ...before] = now.node
    return {
      current: deriveKey({ agents, node: current }, seal, lease),
      before: [...before, undefined].map(node => deriveKey({ agents, node }, seal, lease)),
    }
  }

  return {
    keysOf,
    get exchanges() {
      return exchanges
    },
    async of(lease, signal) {
      const keys = await keysOf(lease, signal)
      if (keys === undefined) return undefined
      const copies: Copy[] = []
      for (const key of [keys.current, ...keys.before])
        for (const sealed of await disk.of(lease, key))
          copies.push({ ...sealed, key, isBefore: key !== keys.current })
      return copies.sort(newestFirst)
    },
  }
}

const isSame = (a: KeyParts, b: KeyParts): boolean =>
  Buffer.from(a.agents).equals(b.agents) && Buffer.from(a.node[0]).equals(b.node[0])
