/** JSON merge patches (RFC 7386): they leave fields alone that they do not name, also those of nested objects. */

type Fields = Readonly<Record<string, unknown>>

const isFields = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/**
 * Returns the patch of an object that makes `after` of it. It names all fields of `after`, and deletes those of `before` that `after` lacks,
 * at each depth. Values that are undefined count as lacking.
 */
export function mergePatch(before: unknown, after: object): Fields {
  const old = isFields(before) ? before : {}
  const kept = Object.entries(after).filter(([, value]) => value !== undefined)
  const names = new Set(kept.map(([name]) => name))
  return Object.fromEntries([
    ...Object.keys(old)
      .filter(name => !names.has(name))
      .map(name => [name, null]),
    ...kept.map(([name, value]) => [name, isFields(value) ? mergePatch(old[name], value) : value]),
  ])
}
