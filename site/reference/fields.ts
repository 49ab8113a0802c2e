/** Fields of a kind, from the schema of its CustomResourceDefinition. */

export interface Rule {
  readonly rule: string
  readonly message: string
}

export interface Field {
  /** `spec.slots[].name`; `.*` is any key of a map. The object itself: empty. */
  readonly path: string
  readonly type: string
  readonly isRequired: boolean
  readonly description: string
  /** As JSON. */
  readonly default?: string
  readonly enum: readonly string[]
  /** Bounds and the like, such as `at most 64 characters`. */
  readonly constraints: readonly string[]
  readonly rules: readonly Rule[]
}

type Schema = Readonly<Record<string, unknown>>

const isRecord = (value: unknown): value is Schema =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** Texts of the keywords that bound a value. */
const bounds: Readonly<Record<string, (value: string) => string>> = {
  minLength: value => `at least ${value} ${value === '1' ? 'character' : 'characters'}`,
  maxLength: value => `at most ${value} characters`,
  minimum: value => `${value} or more`,
  maximum: value => `${value} or less`,
  minItems: value => `at least ${value} ${value === '1' ? 'item' : 'items'}`,
  maxItems: value => `at most ${value} items`,
  maxProperties: value => `at most ${value} entries`,
  pattern: value => `matches ${value}`,
  format: value => `format ${value}`,
  'x-kubernetes-list-type': value => `list of type ${value}`,
  'x-kubernetes-map-type': value => `map of type ${value}`,
}

const otherKeywords: ReadonlySet<string> = new Set([
  'type',
  'description',
  'properties',
  'required',
  'items',
  'additionalProperties',
  'enum',
  'default',
  'nullable',
  'anyOf',
  'x-kubernetes-int-or-string',
  'x-kubernetes-list-map-keys',
  'x-kubernetes-preserve-unknown-fields',
  'x-kubernetes-validations',
])

/** Keywords of the structure: a schema with no others needs no line of its own in a list or map. */
const plainKeywords: ReadonlySet<string> = new Set([
  'type',
  'properties',
  'required',
  'items',
  'additionalProperties',
])

/**
 * Returns the object and all its fields, parents first.
 *
 * @throws Error for a keyword that this function does not know: the page would silently leave it out
 */
export function fieldsOf(schema: unknown): readonly Field[] {
  return walk(schema, '', false)
}

function walk(schema: unknown, path: string, isRequired: boolean): Field[] {
  if (!isRecord(schema)) throw new Error(`the schema of ${path} is not an object`)
  const unknown = Object.keys(schema).find(keyword => !(keyword in bounds) && !otherKeywords.has(keyword))
  if (unknown !== undefined) throw new Error(`${path}: the reference does not know the keyword ${unknown}`)
  return [fieldOf(schema, path, isRequired), ...below(schema, path)]
}

function below(schema: Schema, path: string): Field[] {
  const required = listOf(schema['required'])
  const properties = isRecord(schema['properties']) ? Object.entries(schema['properties']) : []
  return [
    ...properties.flatMap(([name, value]) =>
      walk(value, path === '' ? name : `${path}.${name}`, required.includes(name)),
    ),
    ...elements(schema['items'], `${path}[]`),
    ...elements(schema['additionalProperties'], `${path}.*`),
  ]
}

function elements(schema: unknown, path: string): Field[] {
  if (!isRecord(schema)) return []
  const [own, ...fields] = walk(schema, path, false)
  const saysMore = Object.keys(schema).some(keyword => !plainKeywords.has(keyword))
  return saysMore && own !== undefined ? [own, ...fields] : fields
}

function fieldOf(schema: Schema, path: string, isRequired: boolean): Field {
  const { description, default: byDefault } = schema
  return {
    path,
    type: typeOf(schema),
    isRequired,
    description: typeof description === 'string' ? description : '',
    ...(byDefault !== undefined && { default: JSON.stringify(byDefault) }),
    enum: listOf(schema['enum']).map(value => (typeof value === 'string' ? value : JSON.stringify(value))),
    constraints: constraintsOf(schema),
    rules: listOf(schema['x-kubernetes-validations']).map(each => ruleOf(each, path)),
  }
}

function constraintsOf(schema: Schema): readonly string[] {
  const keys = listOf(schema['x-kubernetes-list-map-keys'])
  return [
    ...Object.entries(bounds).flatMap(([keyword, text]) =>
      schema[keyword] === undefined ? [] : [text(String(schema[keyword]))],
    ),
    ...(keys.length > 0 ? [`one item for each ${keys.join(', ')}`] : []),
    ...(schema['nullable'] === true ? ['may be null'] : []),
    ...(schema['x-kubernetes-preserve-unknown-fields'] === true
      ? ['keeps fields that are not listed here']
      : []),
  ]
}

function typeOf(schema: Schema): string {
  if (schema['x-kubernetes-int-or-string'] === true) return 'integer or string'
  const { type, items, additionalProperties } = schema
  if (isRecord(items)) return `list of ${typeOf(items)}`
  if (isRecord(additionalProperties)) return `map of ${typeOf(additionalProperties)}`
  return typeof type === 'string' ? type : 'any'
}

function ruleOf(value: unknown, path: string): Rule {
  if (!isRecord(value) || typeof value['rule'] !== 'string')
    throw new Error(`${path}: a rule of x-kubernetes-validations has no expression`)
  const { rule, message, messageExpression } = value
  const text = message ?? messageExpression ?? `failed rule: ${rule}`
  return { rule, message: String(text) }
}

const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : [])
