/** The identity of a slot, and its forms as text and as JSON. No other file knows how these are built. */

/**
 * Identifies the memory of one slot. A slot that is begun again, under the same name, has another incarnation and inherits
 * no memory.
 */
export interface SlotKey {
  readonly namespace: string
  /** Name of the slot's Lease. */
  readonly name: string
  /** 8 hex digits, drawn when the slot starts with an empty memory. */
  readonly incarnation: string
}

const namespacePattern = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/
const namePattern = /^[a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)*$/
const incarnationPattern = /^[0-9a-f]{8}$/

/** Bytes in the name of a directory. */
const longestText = 255

/**
 * Returns the key as text that can be one part of a path, distinct for distinct keys: `shop.web.0.0a1b2c3d` for the name
 * `web-0`, and `shop._web.0a1b2c3d` for a name without a number at its end. No name has `_` in it.
 *
 * @returns undefined if Kubernetes does not allow a part of the key, or the text is too long.
 */
export function formatSlotKey({ namespace, name, incarnation }: SlotKey): string | undefined {
  if (name.length > longestText || !namespacePattern.test(namespace) || !namePattern.test(name))
    return undefined
  if (!incarnationPattern.test(incarnation)) return undefined
  const numbered = splitNumber(name)
  const middle = numbered === undefined ? `_${name}` : `${numbered.base}.${numbered.number}`
  const text = `${namespace}.${middle}.${incarnation}`
  return text.length > longestText ? undefined : text
}

/** Parses only the output of `formatSlotKey`. */
export function parseSlotKey(text: string): SlotKey | undefined {
  const [, namespace, plain, base, number, incarnation] =
    /^([^.]+)\.(?:_(.+)|(.+)\.(\d+))\.([0-9a-f]{8})$/.exec(text.slice(0, longestText + 1)) ?? []
  if (namespace === undefined || incarnation === undefined) return undefined
  const key = { namespace, name: plain ?? `${base}-${number}`, incarnation }
  return formatSlotKey(key) === text ? key : undefined
}

/** Splits a name such as `web-0`; undefined if it does not end in a number. */
export function splitNumber(name: string): { readonly base: string; readonly number: number } | undefined {
  const [, base, number] = /^(.*[a-z0-9])-(0|[1-9]\d{0,8})$/.exec(name) ?? []
  return base === undefined ? undefined : { base, number: Number(number) }
}

export const numberedName = (base: string, number: number): string => `${base}-${number}`

export const isSameSlot = (a: SlotKey, b: SlotKey): boolean =>
  a.namespace === b.namespace && a.name === b.name && a.incarnation === b.incarnation

/** A key as JSON. The version before knows only the last three fields, and only names that end in a number. */
export interface SlotFields extends SlotKey {
  readonly set?: string
  readonly slot?: number
  readonly life?: string
}

/** Returns the key as JSON. A later version omits the fields of the version before. */
export function slotFieldsOf({ namespace, name, incarnation }: SlotKey): SlotFields {
  const { base: set, number: slot } = splitNumber(name) ?? {}
  const before = set === undefined || slot === undefined ? {} : { set, slot, life: incarnation }
  return { namespace, ...before, name, incarnation }
}

/**
 * Reads a key in JSON of this version or the version before; undefined if it is not valid, or if the fields of both
 * versions name different slots: then an agent of the version before takes it for another slot than this one.
 */
export function slotKeyIn(fields: Readonly<Record<string, unknown>>): SlotKey | undefined {
  const { namespace, set, slot, life } = fields
  const isOld = fields['name'] === undefined && fields['incarnation'] === undefined
  const { name, incarnation } = isOld ? { name: `${set}-${slot}`, incarnation: life } : fields
  if (typeof namespace !== 'string' || typeof name !== 'string' || typeof incarnation !== 'string')
    return undefined
  const key = { namespace, name, incarnation }
  if (formatSlotKey(key) === undefined) return undefined
  const same = slotFieldsOf(key)
  const hasOld = [set, slot, life].some(field => field !== undefined)
  return !hasOld || (same.set === set && same.slot === slot && same.life === life) ? key : undefined
}
