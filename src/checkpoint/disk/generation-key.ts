/** The key of one incarnation of a slot on one node, derived from parts that no component but the node's agent has together. */
import { createHmac, hkdfSync } from 'node:crypto'
import type { Halves } from '../../api/disk-half.ts'
import type { SlotKey } from '../../api/slot-key.ts'
import { slotName } from '../manifest.ts'

export interface GenerationKey {
  /** 32 bytes; never written anywhere. */
  readonly secret: Buffer
  /** Names the slot's files on a disk: 32 hex digits that do not reveal the slot without the key. */
  readonly tag: string
}

/** Bytes of each part. */
const partLength = 32

export interface NodeParts {
  /** From the Secret that all agents share. */
  readonly agents: Uint8Array
  /** That of the node, see `deriveDiskHalf`. Undefined: for files of the version before, which had none. */
  readonly node: Uint8Array | undefined
}

/** The parts of a node: the others are in Leases. */
export interface KeyParts {
  readonly agents: Uint8Array
  readonly node: Halves
}

/** @param seal the slot's part from its Lease, 64 hex digits. It is deleted with the Lease, and so with the set. */
export function deriveKey({ agents, node }: NodeParts, seal: string, slot: SlotKey): GenerationKey {
  const salt = Buffer.from(seal, 'hex')
  const parts = node === undefined ? [agents] : [agents, node]
  if ([...parts, salt].some(({ length }) => length !== partLength))
    throw new RangeError(`each part of a key needs ${partLength} bytes`)
  const secret = Buffer.concat(parts)
  const derive = (purpose: string, length: number) =>
    Buffer.from(hkdfSync('sha256', secret, salt, `understudy/1 ${purpose} ${slotName(slot)}`, length))
  return {
    secret: derive('generations', 32),
    tag: createHmac('sha256', derive('names', 32)).update('tag').digest('hex').slice(0, 32),
  }
}
