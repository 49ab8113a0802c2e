/** The slot whose memory a new slot begins with, as the Lease of the new one has it. */
import { readAnnotation } from './json-annotation.ts'
import { formatSlotKey } from './slot-key.ts'

export interface CloneOf {
  /** Name and incarnation of the slot in the same namespace. */
  readonly name: string
  readonly incarnation: string
  /** The generation that is copied, or a later one. */
  readonly epoch: number
  readonly generation: number
  /** The node that copies it. */
  readonly node: string
  /** A primary has served with the copy. */
  readonly served?: true
}

interface Slot {
  readonly holder: { readonly uid: string }
  readonly cloneOf?: CloneOf
}

/** No pod has a uid with this prefix. */
const prefix = 'clone-of-'

/** Returns the uid of the holder of a slot that has had no primary yet. @param pod uid of the primary of the other slot. */
export const cloneHolder = (pod: string): string => `${prefix}${pod}`

/** True for the Lease of a slot that begins with a copy of other memory, and to which no pod has been called yet. */
export const isCloning = <Lease extends Slot>(lease: Lease): lease is Lease & { readonly cloneOf: CloneOf } =>
  lease.cloneOf !== undefined && isCloneHolder(lease.holder.uid)

export const isCloneHolder = (uid: string): boolean => uid.startsWith(prefix)

/**
 * True for a slot that may not begin empty: as far as is known, no second node has what it has of its own. A Lease whose `cloneOf`
 * cannot be read still names no pod.
 */
export const isOfSource = ({ cloneOf, holder }: Slot): boolean =>
  cloneOf !== undefined || isCloneHolder(holder.uid)

/** True for a slot that has nothing of its own yet: no primary has served with the copy with which it begins. */
export const isUnserved = ({ cloneOf }: { readonly cloneOf?: CloneOf }): boolean =>
  cloneOf !== undefined && cloneOf.served !== true

/** Characters. */
const longest = 1_024

export const formatCloneOf = ({ name, incarnation, epoch, generation, node, served }: CloneOf): string =>
  JSON.stringify({ name, incarnation, epoch, generation, node, served })

/** Undefined: absent, or unreadable: also if no slot of the namespace can have that name. */
export function parseCloneOf(text: string | undefined, namespace: string): CloneOf | undefined {
  const { name, incarnation, epoch, generation, node, served } = readAnnotation(text, longest) ?? {}
  const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && Number(value) >= 0
  const isText = (value: unknown): value is string => typeof value === 'string' && value !== ''
  return isText(name) &&
    isText(incarnation) &&
    isText(node) &&
    isCount(epoch) &&
    isCount(generation) &&
    formatSlotKey({ namespace, name, incarnation }) !== undefined
    ? { name, incarnation, epoch, generation, node, ...(served === true && { served }) }
    : undefined
}
