/**
 * docs/paper.md names every row of the checklist that differs from the paper, and only existing ways to the paper's
 * behaviour.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import { deviating, groups } from '../../checklist/features.ts'

const root = new URL('../../..', import.meta.url).pathname
const read = (path: string) => readFileSync(join(root, path), 'utf8')

interface Schema {
  readonly properties?: Readonly<Record<string, Schema>>
}
const crd = parse(read('crds/backup.example.com_backuppodsets.yaml')) as {
  readonly spec: {
    readonly versions: readonly { readonly schema: { readonly openAPIV3Schema: Schema } }[]
  }
}
const spec = crd.spec.versions[0]?.schema.openAPIV3Schema.properties?.['spec']

const tables = read('docs/paper.md')
  .split('\n')
  .filter(line => /^\| (?!row|here|-)/.test(line))
  .map(line =>
    line
      .split(/(?<!\\)\|/)
      .slice(1, -1)
      .map(cell => cell.trim()),
  )
const rows = tables.filter(([row = '']) => /^F\d\d$/.test(row))

describe('the page about the paper', () => {
  test('has every row that deviates, once and in order, and no other', () => {
    expect(rows.map(([row]) => row)).toEqual(deviating)
    const known = groups.flatMap(({ features }) => features.map(({ id }) => id))
    expect(deviating.filter(id => !known.includes(id))).toEqual([])
  })

  test.each(rows.map(([row = '', ...cells]) => ({ row, cells })))(
    '$row says what the paper has, what is here, why, and the way back',
    ({ cells }) => {
      expect(cells).toHaveLength(4)
      expect(cells.filter(cell => cell === '')).toEqual([])
    },
  )

  const ways = tables.map(cells => cells.at(-1) ?? '')
  const fields = [...new Set(ways.flatMap(way => way.match(/`[a-z]\w*(\.\w+)*`/gi) ?? []))]
    .map(quoted => quoted.slice(1, -1))
    .filter(field => !['ports', 'random', 'unallocatedTo'].includes(field))

  test.each(fields)('the field %s of a way back exists', field => {
    let node: Schema | undefined = spec
    for (const part of field.split('.')) node = node?.properties?.[part]
    expect(node).toBeDefined()
  })

  test('has ways back, and is found from the concepts', () => {
    expect(fields.length).toBeGreaterThan(10)
    expect(read('docs/concepts.md')).toContain('](paper.md)')
  })
})
