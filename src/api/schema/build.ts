/**
 * Builders of OpenAPI schemas that carry the TypeScript type they describe. A record of properties has the type of its
 * interface in src/api: a field, a type or a value that only one of the two has does not compile.
 */
export type Schema = { readonly [key: string]: unknown }

declare const described: unique symbol

/** A schema of T. The type appears as argument and as result, so that neither a wider nor a narrower type passes. */
export interface SchemaOf<T> extends Schema {
  readonly [described]?: (value: T) => T
}

type Properties<T> = { readonly [Key in keyof T]-?: SchemaOf<Exclude<T[Key], undefined>> }
/** Fields that are always present, by name, because an array could miss one unnoticed. */
type Required<T> = {
  readonly [Key in keyof T as undefined extends T[Key] ? never : Key]: true
}

export const object = <T>(
  properties: Properties<T>,
  required: Required<T>,
  more: Schema = {},
): SchemaOf<T> => {
  const always = Object.keys(required)
  return { type: 'object', ...more, ...(always.length > 0 ? { required: always } : {}), properties }
}

export const text = (description: string, more: Schema = {}): SchemaOf<string> => ({
  description,
  type: 'string',
  ...more,
})

/** RFC 3339. */
export const time = (description: string): SchemaOf<string> => text(description, { format: 'date-time' })

export const flag = (description: string, standard?: boolean): SchemaOf<boolean> => ({
  description,
  type: 'boolean',
  ...(standard === undefined ? {} : { default: standard }),
})

/** Bounds of the name of an object. */
export const objectName = { minLength: 1, maxLength: 253 }

/** The form of a duration such as `1m30s`. */
export const durationPattern = '^([0-9]+([.][0-9]+)?(ms|s|m|h))+$'

/** A number in the status, which nothing checks. */
export const count = (description: string, more: Schema = {}): SchemaOf<number> => ({
  description,
  type: 'integer',
  format: 'int32',
  ...more,
})

/** A duration in the status; its unit is added to the description. */
export const seconds = (description: string): SchemaOf<number> => ({
  description: `${description} Seconds.`,
  type: 'number',
})

/** A number in the spec. */
export const integer = (
  description: string,
  { min, max }: { readonly min: number; readonly max: number },
  standard: number,
): SchemaOf<number> => count(description, { minimum: min, maximum: max, default: standard })

export const choice = <const Values extends readonly string[]>(
  description: string,
  values: Values,
  standard?: NoInfer<Values[number]>,
): SchemaOf<Values[number]> => ({
  description,
  type: 'string',
  enum: values,
  ...(standard === undefined ? {} : { default: standard }),
})

export const list = <Item>(
  description: string,
  items: SchemaOf<Item>,
  maxItems: number,
  more: Schema = { 'x-kubernetes-list-type': 'atomic' },
): SchemaOf<readonly Item[]> => ({ description, type: 'array', maxItems, ...more, items })

/** A list whose items are identified by one field, so that server-side apply merges them. */
export const mapList = <Item>(
  description: string,
  key: keyof Item & string,
  items: SchemaOf<Item>,
  maxItems: number,
): SchemaOf<readonly Item[]> =>
  list(description, items, maxItems, {
    'x-kubernetes-list-type': 'map',
    'x-kubernetes-list-map-keys': [key],
  })

/** A validation in CEL. */
export const rule = (condition: string, message: string, more: Schema = {}): Schema => ({
  rule: condition,
  message,
  reason: 'FieldValueInvalid',
  ...more,
})

/** Returns the properties of an object's schema, for a kind that has some of these fields, too. */
export const propertiesOf = <T>(schema: SchemaOf<T>): Properties<T> => schema['properties'] as Properties<T>

/** Returns these properties of an object. */
export const picked = <T extends object, Key extends keyof T>(all: T, keys: readonly Key[]): Pick<T, Key> => {
  const isPicked = new Set<PropertyKey>(keys)
  return Object.fromEntries(Object.entries(all).filter(([key]) => isPicked.has(key))) as Pick<T, Key>
}
