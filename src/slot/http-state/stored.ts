import { createHash } from 'node:crypto'
import type { Holder } from '../decide/pulled-view.ts'

/** The metadata of a state in the state store. */
export interface StoredState {
  readonly slot: number
  /** 8 hex digits. */
  readonly incarnation: string
  readonly generation: number
  readonly holder: Holder
  /** SHA-256 of the bytes, hex. */
  readonly digest: string
  readonly contentType: string | undefined
  /** Ms since the epoch, by this process' clock. */
  readonly takenAtWall: number
  /** From the start of the request until the state was complete. */
  readonly seconds: number
  /** The bytes are not in this process: only the pod has the state. */
  readonly hollow: boolean
}

/** In the store, the field of the incarnation is called `life`. */
export function storedMeta(state: StoredState | undefined): Uint8Array | undefined {
  if (state === undefined) return undefined
  const { slot, incarnation: life, generation, holder, digest, contentType, takenAtWall, seconds } = state
  const text = JSON.stringify({ slot, life, generation, holder, digest, contentType, takenAtWall, seconds })
  return Buffer.from(text)
}

/** Parses stored metadata. It may be of any age and shape: undefined if it cannot be read. */
export function parseStored(bytes: Uint8Array | undefined): StoredState | undefined {
  if (bytes === undefined) return undefined
  let value: unknown
  try {
    value = JSON.parse(Buffer.from(bytes).toString())
  } catch {
    return undefined
  }
  if (typeof value !== 'object' || value === null) return undefined
  const it = value as Record<string, unknown>
  const holder = it['holder'] as Record<string, unknown> | undefined
  const natural = (each: unknown): each is number => Number.isSafeInteger(each) && (each as number) >= 0
  const text = (each: unknown): each is string => typeof each === 'string' && each !== ''
  const isWhole =
    natural(it['slot']) &&
    text(it['life']) &&
    natural(it['generation']) &&
    text(it['digest']) &&
    natural(it['takenAtWall']) &&
    typeof it['seconds'] === 'number' &&
    typeof holder === 'object' &&
    text(holder?.['name']) &&
    text(holder?.['uid']) &&
    natural(holder?.['epoch']) &&
    natural(holder?.['restarts'])
  if (!isWhole) return undefined
  const { life: incarnation, ...rest } = value as StoredState & { readonly life: string }
  return {
    ...rest,
    incarnation,
    contentType: text(it['contentType']) ? it['contentType'] : undefined,
    hollow: false,
  }
}

/** The bytes in their stored form. */
export const storedBytes = Object.assign(
  (state: { readonly bytes: Buffer; readonly hollow: boolean } | undefined): Uint8Array | undefined =>
    state === undefined || state.hollow ? undefined : state.bytes,
  {
    /** Metadata and bytes have separate keys: undefined if the bytes do not match the digest in the metadata. */
    read: (bytes: Uint8Array, digest: string): Buffer | undefined =>
      createHash('sha256').update(bytes).digest('hex') === digest ? Buffer.from(bytes) : undefined,
  },
)
