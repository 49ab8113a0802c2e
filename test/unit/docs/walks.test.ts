/** The walks of docs/architecture.md: each file exists, imports lead to it, and the counts are right. */
import { existsSync, readFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { describe, expect, test } from 'vitest'

const root = new URL('../../..', import.meta.url).pathname
const text = readFileSync(join(root, 'docs/architecture.md'), 'utf8')

interface Row {
  readonly file: string
  readonly asks: readonly string[]
}

const filesIn = (cell: string): string[] =>
  [...cell.matchAll(/`([\w./-]+\.(?:ts|c))`/g)].map(([, file = '']) => file)

/** The tables of a walk, one for each of its parts. */
function partsOf(walk: string): Row[][] {
  const [, body = ''] = text.split(`\n### ${walk}: `)
  const [own = ''] = body.split(/\n#{2,3} /)
  const tables = own.split('| file | what happens there | asks |\n|---|---|---|\n').slice(1)
  return tables.map(table => {
    const [rows = ''] = table.split('\n\n')
    return rows
      .trim()
      .split('\n')
      .map(row => {
        const [, first = '', , asked = ''] = row.split('|')
        const [file = ''] = filesIn(first)
        return {
          file,
          asks: filesIn(asked).map(ask =>
            ask.includes('/') && existsSync(join(root, ask)) ? ask : join(dirname(file), ask),
          ),
        }
      })
  })
}

const read = (file: string): string =>
  existsSync(join(root, file)) ? readFileSync(join(root, file), 'utf8') : ''

/** The files that a file imports, and those whose path it names. A C program imports headers, also through headers. */
function importsOf(file: string): ReadonlySet<string> {
  const found = new Set(
    [...read(file).matchAll(/(?:native|init-waker)\/[\w./-]+\.c\b/g)].map(([path]) => path),
  )
  if (file.endsWith('.ts'))
    for (const [, path = ''] of read(file).matchAll(/from '(\.[^']+)'/g)) found.add(join(dirname(file), path))
  const include = (path: string): void => {
    for (const [, name = ''] of read(path).matchAll(/#include "([^"]+)"/g)) {
      const header = join(dirname(file), name)
      if (found.has(header)) continue
      found.add(header)
      include(header)
    }
  }
  if (file.endsWith('.c')) include(file)
  return found
}

/** The header that declares what is in a C file: its own, or that of its folder. */
function headerOf(file: string): string {
  const own = file.replace(/\.c$/, '.h')
  return existsSync(join(root, own)) ? own : join(dirname(file), `${basename(dirname(file))}.h`)
}

const leadsTo = (from: string, to: string): boolean =>
  importsOf(from).has(to) || importsOf(from).has(headerOf(to))
const touches = (a: string, b: string): boolean => a === b || leadsTo(a, b) || leadsTo(b, a)

/** Rows that no import ties to a row before them, with the files that these ask. A process begins without one. */
function strayRows(parts: readonly (readonly Row[])[]): string[] {
  const known: string[] = []
  const strays: string[] = []
  for (const part of parts)
    for (const [at, { file, asks }] of part.entries()) {
      const isStart =
        at === 0 || (file.endsWith('.c') && !known.some(other => dirname(other) === dirname(file)))
      const own = [file, ...asks]
      if (!isStart && !known.some(other => own.some(each => touches(each, other)))) strays.push(file)
      for (const ask of asks)
        if (!own.some(each => each !== ask && touches(each, ask))) strays.push(`${file} asks ${ask}`)
      known.push(...own)
    }
  return strays
}

const roots = /^src\/(?:operator\/operator|backuppodset\/controller|agent\/(?:agent|core|startup))\.ts$/

describe.each([
  { walk: 'Walk 1', mostRows: 60 },
  { walk: 'Walk 2', mostRows: 60 },
])('$walk', ({ walk, mostRows }) => {
  const parts = partsOf(walk)
  const rows = parts.flat()
  const files = new Set(rows.map(({ file }) => file))
  const all = new Set(rows.flatMap(({ file, asks }) => [file, ...asks]))

  test('names files that exist', () => {
    expect([...all].filter(file => !existsSync(join(root, file)))).toEqual([])
  })

  test('goes only where imports lead', () => {
    expect(strayRows(parts)).toEqual([])
  })

  test('has as many files as the document says, and no more than 60 rows', () => {
    const [, ...counts] = new RegExp(`\\| ${walk} \\| (\\d+) \\| (\\d+) \\|`).exec(text) ?? []
    expect(counts.map(Number)).toEqual([files.size, all.size])
    expect(files.size).toBeLessThanOrEqual(mostRows)
  })

  test('passes no other file twice than composition roots and the store', () => {
    const names = rows.map(({ file }) => file)
    const twice = names.filter((file, at) => names.indexOf(file) !== at && !roots.test(file))
    expect(twice.filter(file => file !== 'src/checkpoint/store.ts')).toEqual([])
  })

  test('passes each composition root twice at most', () => {
    const visits = rows.map(({ file }) => file).filter(file => roots.test(file))
    const often = visits.filter(file => visits.filter(other => other === file).length > 2)
    expect(often).toEqual([])
  })
})

test('the files that answer where something is exist', () => {
  const [, table = ''] = text.split('| question | file | guess |\n|---|---|---|\n')
  const rows = table.trim().split('\n')
  expect(rows.length).toBe(24)
  const answers = rows.map(row =>
    [...(row.split('|')[2] ?? '').matchAll(/`([^`]+)`/g)].map(([, file = '']) => file),
  )
  expect(answers.filter(([file]) => file === undefined)).toEqual([])
  expect(answers.flat().filter(file => !existsSync(join(root, file)))).toEqual([])
})
