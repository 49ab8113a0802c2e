/** Looking into values of whatever shape, as the rules do: nothing here throws. */

export type Anything = Readonly<Record<string, unknown>>

/** Kubernetes takes null for absent. */
export const isSet = (value: unknown): boolean => value !== undefined && value !== null

export const isText = (value: unknown, form: RegExp): boolean => typeof value === 'string' && form.test(value)

export const objectOr = <Otherwise>(value: unknown, otherwise: Otherwise): Anything | Otherwise =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Anything) : otherwise

/** The object, or an empty one in place of something else. */
export const objectIn = (value: unknown): Anything => objectOr(value, {})

/** The objects of a list; none of something else. */
export const objectsIn = (value: unknown): readonly Anything[] =>
  Array.isArray(value) ? value.filter(it => objectOr(it, undefined) !== undefined) : []

export const textsIn = (value: unknown): readonly string[] =>
  Array.isArray(value) ? value.filter(it => typeof it === 'string') : []
