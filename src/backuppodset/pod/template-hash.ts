import { createHash } from 'node:crypto'
import type { ParsedMemory } from '../../api/memory.ts'
import type { ParsedSet } from '../../api/parse.ts'
import { memoryKept } from '../../api/pod-contract.ts'

/** JSON with sorted keys: equal values give equal text, whichever client wrote them. */
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
 * Identifies the template of pods: 10 hex digits, valid in a label. It covers only the user's input, so that an
 * operator with another gate image never rolls a set. It includes whether memory is kept and for which containers,
 * because that changes the pods, but not the interval.
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
