/** Access to values of any shape, for the rules: nothing here throws. */

export type Anything = Readonly<Record<string, unknown>>

/** Kubernetes treats null as absent. */
export const isSet = (value: unknown): boolean => value !== undefined && value !== null

export const isText = (value: unknown, form: RegExp): boolean => typeof value === 'string' && form.test(value)

export const objectOr = <Otherwise>(value: unknown, otherwise: Otherwise): Anything | Otherwise =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Anything) : otherwise

/** Returns the object, or an empty one if the value is not an object. */
export const objectIn = (value: unknown): Anything => objectOr(value, {})

/** Returns the objects of a list; none if the value is not a list. */
export const objectsIn = (value: unknown): readonly Anything[] =>
  Array.isArray(value) ? value.filter(it => objectOr(it, undefined) !== undefined) : []

export const textsIn = (value: unknown): readonly string[] =>
  Array.isArray(value) ? value.filter(it => typeof it === 'string') : []
