/** docs/pod-fields.md has every field that a template can have, and names only existing tests. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'

const root = new URL('../../..', import.meta.url).pathname
const read = (path: string) => readFileSync(join(root, path), 'utf8')

interface Schema {
  readonly properties?: Readonly<Record<string, Schema>>
  readonly items?: Schema
}
const pod = JSON.parse(read('crds/pod-template.schema.json')) as Schema
const fieldsOf = (schema: Schema | undefined) => Object.keys(schema?.properties ?? {}).sort()

const page = read('docs/pod-fields.md')
const sectionOf = (title: string) => page.split(/^## /m).find(it => it.startsWith(`${title}\n`)) ?? ''
const rowsOf = (title: string) =>
  [...sectionOf(title).matchAll(/^\| (`.*?) \| .* \| (.*?) \|$/gm)].map(([, fields = '', proof = '']) => ({
    fields: [...fields.matchAll(/`(\w+)[^`]*`/g)].map(([, field = '']) => field),
    proof,
  }))

describe('D6.fields: every field works or is refused', () => {
  test.each([
    ['Pod', fieldsOf(pod)],
    ['Container', fieldsOf(pod.properties?.['containers']?.items)],
    ['Volumes', fieldsOf(pod.properties?.['volumes']?.items).filter(field => field !== 'name')],
  ])('%s: the page has them all, and no others', (title, fields) => {
    expect(fields.length).toBeGreaterThan(20)
    // A row may describe a part of a field, or one of its values.
    const listed = new Set(rowsOf(title).flatMap(row => row.fields))
    expect(fields.filter(field => !listed.has(field))).toEqual([])
    const known = new Set([...fields, 'restartPolicy', 'Always'])
    expect([...listed].filter(field => !known.has(field))).toEqual([])
  })

  const rows = ['Pod', 'Container', 'Volumes'].flatMap(rowsOf)
  test.each(rows)('$fields: $proof', ({ proof }) => {
    const [, path = '', words = ''] = /^([\w./-]+) `(.*)`$/.exec(proof) ?? []
    expect(read(path)).toContain(words)
  })
})
