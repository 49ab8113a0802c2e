import { createHash } from 'node:crypto'
import type { ParsedMemory } from '../../api/memory.ts'
import type { ParsedSet } from '../../api/parse.ts'
import { memoryKept } from '../../api/stage.ts'

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
 * Names what pods are made from: 10 hex digits, fit for a label. Only what the user wrote counts, so that an operator
 * with another gate image never rolls a set. That memory is kept counts, and of which containers, because pods for it are
 * made differently; how often does not.
 */
export function templateHash({
  template,
  memory,
}: {
  readonly template: ParsedSet['template']
  readonly memory: Pick<ParsedMemory, 'containers'> | undefined
}): string {
  const written =
    memory === undefined ? template : { template, memory: memoryKept, containers: memory.containers }
  return createHash('sha256').update(canonical(written)).digest('hex').slice(0, 10)
}
