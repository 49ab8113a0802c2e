import { PlaygroundError } from './failure.ts'

/** Returns those of these names, in their own order. @throws PlaygroundError for a name that none has. */
export function chosen<T extends { readonly name: string }>(
  what: string,
  all: readonly T[],
  names: readonly string[],
): readonly T[] {
  const unknown = names.find(name => !all.some(each => each.name === name))
  if (unknown !== undefined)
    throw new PlaygroundError(`no ${what} ${unknown}: ${all.map(({ name }) => name).join(', ')}`)
  return all.filter(({ name }) => names.includes(name))
}
