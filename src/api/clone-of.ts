/** The slot whose memory a new slot begins with, as the Lease of the new one has it. */
import { readAnnotation } from './json-annotation.ts'

export interface CloneOf {
  /** Name and incarnation of the slot in the same namespace. */
  readonly name: string
  readonly incarnation: string
  /** The generation that is copied, or a later one. */
  readonly epoch: number
  readonly generation: number
  /** The node that copies it. */
  readonly node: string
}

/** No pod has a uid with this prefix. */
const prefix = 'clone-of-'

/** Returns the uid of the holder of a slot that has had no primary yet. @param pod uid of the primary of the other slot. */
export const cloneHolder = (pod: string): string => `${prefix}${pod}`

/** True for the Lease of a slot that begins with a copy of other memory, and to which no pod has been called yet. */
export const isCloning = <
  Slot extends { readonly holder: { readonly uid: string }; readonly cloneOf?: CloneOf },
>(
  lease: Slot,
): lease is Slot & { readonly cloneOf: CloneOf } =>
  lease.cloneOf !== undefined && lease.holder.uid.startsWith(prefix)

/** Characters. */
const longest = 1_024

export const formatCloneOf = ({ name, incarnation, epoch, generation, node }: CloneOf): string =>
  JSON.stringify({ name, incarnation, epoch, generation, node })

/** Undefined: absent, or unreadable. */
export function parseCloneOf(text: string | undefined): CloneOf | undefined {
  const { name, incarnation, epoch, generation, node } = readAnnotation(text, longest) ?? {}
  const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && Number(value) >= 0
  const isText = (value: unknown): value is string => typeof value === 'string' && value !== ''
  return isText(name) && isText(incarnation) && isText(node) && isCount(epoch) && isCount(generation)
    ? { name, incarnation, epoch, generation, node }
    : undefined
}
