/**
 * What is computed of an object is computed once for each object: what lies in a store is never changed, and a new
 * version of it is another object.
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
