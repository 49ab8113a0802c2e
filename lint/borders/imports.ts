/** Reads the imports of source files, and finds those that the table of rooms does not allow. */
import { dirname, join } from 'node:path/posix'
import { parseTypeScript } from '../parse.ts'
import type { Room } from './rooms.ts'

export interface Import {
  readonly from: string
  readonly to: string
}

/** Everything that one file imports or re-exports, as written; dynamic imports only with a literal name. */
export function importedBy(path: string, source: string): readonly string[] {
  const { module } = parseTypeScript(path, source)
  return [
    ...module.staticImports.map(({ moduleRequest }) => moduleRequest.value),
    ...module.staticExports.flatMap(({ entries }) =>
      entries.flatMap(entry => entry.moduleRequest?.value ?? []),
    ),
    ...module.dynamicImports.flatMap(({ moduleRequest: { start, end } }) => {
      const literal = /^(['"])(.*)\1$/u.exec(source.slice(start, end))
      return literal?.[2] ?? []
    }),
  ]
}

/** The relative ones of these; paths from the root of the repository. */
export const importsOf = (path: string, source: string): readonly Import[] =>
  importedBy(path, source)
    .filter(name => name.startsWith('.'))
    .map(name => ({ from: path, to: join(dirname(path), name) }))

/** Files of tests, and what only they use. */
export const isTest = (path: string): boolean => /\.test\.ts$|\/testing\//u.test(path)

/** The innermost room that contains a file; undefined: it is in none. */
export const roomOf = (path: string, rooms: Readonly<Record<string, Room>>): string | undefined =>
  Object.keys(rooms)
    .filter(room => path.startsWith(`${room}/`))
    .reduce<string | undefined>((best, room) => (room.length > (best?.length ?? 0) ? room : best), undefined)

/** @returns a sentence for each import that crosses a border without permission. */
export function violationsOf(
  imports: readonly Import[],
  rooms: Readonly<Record<string, Room>>,
): readonly string[] {
  return imports.flatMap(({ from, to }) => {
    const room = roomOf(from, rooms)
    if (room === undefined || isTest(from)) return []
    if (isTest(to)) return [`${from} is no test and imports ${to}`]
    const target = roomOf(to, rooms) ?? to
    if (rooms[room]?.not?.some(path => to.startsWith(path)) === true)
      return [`${from} imports ${to}: ${room} may not use that file of ${target}`]
    if (target === room || rooms[room]?.uses.includes(target) === true || to.endsWith('.json')) return []
    return [`${from} imports ${to}: ${room} may not use ${target}`]
  })
}
