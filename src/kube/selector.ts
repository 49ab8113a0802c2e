/** Selectors, evaluated here: which objects a list or watch with a query shows. */
import type { KubeObject } from './object.ts'

export interface Selection {
  readonly namespace?: string | undefined
  readonly labelSelector?: string | undefined
  readonly fieldSelector?: string | undefined
}

type Read = (name: string) => unknown

/** `a`, `!a`, `a=b`, `a==b`, `a!=b`, `a in (b, c)`, `a notin (b, c)`. */
const requirement = /^\s*(!?)\s*([\w./-]+)\s*(?:(!=|==?)\s*([\w.-]*)|(in|notin)\s*\(([^()]*)\))?\s*$/

/** Returns a function that says whether a query selects an object. @throws TypeError for a selector that is invalid. */
export function selectorOf({
  namespace,
  labelSelector,
  fieldSelector,
}: Selection): (object: KubeObject) => boolean {
  const byLabels = requirementsOf(labelSelector)
  const byFields = requirementsOf(fieldSelector)
  return object =>
    (namespace === undefined || object.metadata.namespace === namespace) &&
    byLabels(name => object.metadata.labels?.[name]) &&
    byFields(path =>
      path
        .split('.')
        .reduce<unknown>((value, key) => (value as Record<string, unknown> | undefined)?.[key], object),
    )
}

function requirementsOf(selector: string | undefined): (read: Read) => boolean {
  // A comma within parentheses separates values, not requirements.
  const texts = selector?.trim() ? selector.split(/,(?![^(]*\))/) : []
  const all = texts.map(text => {
    const parsed = requirement.exec(text)
    if (parsed === null) throw new TypeError(`not a selector: ${text}`)
    const [, not, name = '', operator, wanted, setOperator, list = ''] = parsed
    if (setOperator !== undefined) {
      const values = list.split(',').map(value => value.trim())
      return (read: Read) => values.includes(read(name) as string) === (setOperator === 'in')
    }
    if (operator === undefined) return (read: Read) => (read(name) !== undefined) === (not === '')
    return (read: Read) => (read(name) === wanted) === (operator !== '!=')
  })
  return read => all.every(holds => holds(read))
}
