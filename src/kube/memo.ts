/**
 * Caches a computed value for each object. This is sound because objects in a store never change: a new version is
 * another object.
 */
export function createMemo<K extends object, V>(compute: (of: K) => V): (of: K) => V {
  const known = new WeakMap<K, { readonly value: V }>()
  return of => {
    const found = known.get(of)
    if (found !== undefined) return found.value
    const value = compute(of)
    known.set(of, { value })
    return value
  }
}
