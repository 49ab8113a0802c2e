/**
 * Compares two values like `isDeepStrictEqual`, for JSON values and fields that are undefined. Each pass compares
 * caches with the desired state, and most of the values are the identical object.
 */
export function isEqual(a: unknown, b: unknown): boolean {
  if (Object.is(a, b)) return true
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return false
  if (Array.isArray(a)) {
    if (!Array.isArray(b) || a.length !== b.length) return false
    for (let index = 0; index < a.length; index += 1) if (!isEqual(a[index], b[index])) return false
    return true
  }
  if (Array.isArray(b)) return false
  const keys = Object.keys(a)
  if (keys.length !== Object.keys(b).length) return false
  for (const key of keys)
    if (!Object.hasOwn(b, key) || !isEqual(a[key as never], b[key as never])) return false
  return true
}
