/** The key of one incarnation of a slot, derived from two halves. One half alone reveals nothing. */
import { createHmac, hkdfSync } from 'node:crypto'
import type { SlotKey } from '../../api/slot-key.ts'
import { slotName } from '../manifest.ts'

export interface GenerationKey {
  /** 32 bytes; never written anywhere. */
  readonly secret: Buffer
  /** Names the slot's files on a disk: 32 hex digits that do not reveal the slot without the key. */
  readonly tag: string
}

/** Bytes of each half. */
export const halfLength = 32

/**
 * @param agentsHalf the half from the Secret that all agents share.
 * @param seal the slot's half from its Lease, 64 hex digits. It is deleted with the Lease, and so with the set.
 */
export function deriveKey(agentsHalf: Uint8Array, seal: string, slot: SlotKey): GenerationKey {
  const half = Buffer.from(seal, 'hex')
  if (agentsHalf.length !== halfLength || half.length !== halfLength)
    throw new RangeError(`both halves of a key need ${halfLength} bytes`)
  const derive = (purpose: string, length: number) =>
    Buffer.from(hkdfSync('sha256', agentsHalf, half, `understudy/1 ${purpose} ${slotName(slot)}`, length))
  return {
    secret: derive('generations', 32),
    tag: createHmac('sha256', derive('names', 32)).update('tag').digest('hex').slice(0, 32),
  }
}
