import { createHash } from 'node:crypto'

/** JSON with sorted keys: the same value gives the same text whoever wrote it. */
function canonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join(',')}]`
  if (typeof value === 'object' && value !== null) {
    const fields = Object.entries(value)
      .filter(([, field]) => field !== undefined)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([key, field]) => `${JSON.stringify(key)}:${canonical(field)}`)
    return `{${fields.join(',')}}`
  }
  return JSON.stringify(value)
}

/**
 * Names a template: 10 hex digits, fit for a label. Only what the user wrote counts, so that an operator with another
 * gate image never rolls a set.
 */
export function templateHash(template: unknown): string {
  return createHash('sha256').update(canonical(template)).digest('hex').slice(0, 10)
}
