/**
 * Whether two values say the same, as `isDeepStrictEqual` has it, of what JSON can hold and of fields that are undefined.
 * Caches are compared with what is wanted at every pass, and most of it is the very same object.
 */
export function isEqual(a: unknown, b: unknown): boolean {
  if (Object.is(a, b)) return true
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return false
  if (Array.isArray(a))
    return Array.isArray(b) && a.length === b.length && a.every((item, index) => isEqual(item, b[index]))
  if (Array.isArray(b)) return false
  const keys = Object.keys(a)
  if (keys.length !== Object.keys(b).length) return false
  return keys.every(key => Object.hasOwn(b, key) && isEqual(a[key as never], b[key as never]))
}
