import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import { textOfHtml } from '../html.ts'
import { project, readKinds } from '../sources.ts'
import { fieldsOf } from './fields.ts'
import { anchorOf, kindPage, kindSections, tablesOf } from './page.ts'

const kinds = await readKinds()

/** Counts names below `properties` without the code under test. */
function propertiesIn(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0
  return Object.entries(value).reduce((sum, [key, child]) => {
    const isSchema =
      key === 'properties' && typeof child === 'object' && child !== null && !Array.isArray(child)
    if (isSchema) {
      const fields = Object.values(child)
      return sum + fields.length + fields.reduce<number>((below, field) => below + propertiesIn(field), 0)
    }
    return sum + (key === 'default' || key === 'enum' ? 0 : propertiesIn(child))
  }, 0)
}

describe.each(kinds.map(kind => [`${kind.kind}.${kind.group}`, kind] as const))(
  'D23.reference: %s',
  (_, kind) => {
    const page = kindPage(kind)

    test('has a line for every field of the schema', () => {
      const schema: unknown = parse(readFileSync(join(project, kind.source), 'utf8')).spec.versions.find(
        ({ name }: { readonly name: string }) => name === kind.version,
      ).schema.openAPIV3Schema
      const fields = kind.fields.filter(
        ({ path }) => path !== '' && !path.endsWith('[]') && !path.endsWith('.*'),
      )
      expect(fields.length).toBe(propertiesIn(schema))
      const shown = [...page.matchAll(/<tr id="([^"]*)"/g)].map(([, anchor]) => anchor)
      expect(shown.toSorted()).toEqual(kind.fields.map(anchorOf).toSorted())
      expect(new Set(shown).size).toBe(shown.length)
    })

    test('has every message of a rule, and its expression', () => {
      const text = textOfHtml(page)
      const said = (words: string) => text.includes(words.replace(/\s+/g, ' ').trim())
      const rules = kind.fields.flatMap(({ rules }) => rules)
      expect(rules.filter(({ rule, message }) => !said(rule) || !said(message))).toEqual([])
    })
  },
)

test('D23.reference: there is a page for each file of crds that defines a kind', () => {
  const defining = globSync('crds/**/*.yaml', { cwd: project }).filter(path =>
    readFileSync(join(project, path), 'utf8').includes('kind: CustomResourceDefinition'),
  )
  expect(new Set(kinds.map(({ source }) => source))).toEqual(new Set(defining))
})

test('D23.reference: a field has type, default, values, bounds, rules and description', () => {
  const fields = fieldsOf({
    type: 'object',
    required: ['mode'],
    properties: {
      mode: { type: 'string', description: 'How.', enum: ['Warm', 'Staged'], default: 'Warm' },
      ports: {
        type: 'array',
        maxItems: 3,
        items: { type: 'object', properties: { port: { 'x-kubernetes-int-or-string': true, anyOf: [] } } },
        'x-kubernetes-validations': [{ rule: 'self.size() < 3', message: 'use fewer' }],
      },
      labels: { type: 'object', additionalProperties: { type: 'string', maxLength: 63 } },
    },
  })
  const none = { isRequired: false, description: '', enum: [], constraints: [], rules: [] }
  expect(fields).toEqual([
    { ...none, path: '', type: 'object' },
    {
      ...none,
      ...{ path: 'mode', type: 'string', isRequired: true, description: 'How.', default: '"Warm"' },
      enum: ['Warm', 'Staged'],
    },
    {
      ...none,
      ...{ path: 'ports', type: 'list of object', constraints: ['at most 3 items'] },
      rules: [{ rule: 'self.size() < 3', message: 'use fewer' }],
    },
    { ...none, path: 'ports[].port', type: 'integer or string' },
    { ...none, path: 'labels', type: 'map of string' },
    { ...none, path: 'labels.*', type: 'string', constraints: ['at most 63 characters'] },
  ])
})

test('D23.reference: a keyword that the pages would leave out is refused', () => {
  expect(() => fieldsOf({ properties: { a: { type: 'string', multipleOf: 2 } } })).toThrow(
    'a: the reference does not know the keyword multipleOf',
  )
})

test('D23.reference: the template of pods has a table of its own, and its fields do not fill the search', () => {
  const [set] = kinds.filter(({ kind }) => kind === 'BackupPodSet')
  if (set === undefined) throw new Error('no BackupPodSet')
  expect(tablesOf(set.fields).map(({ path }) => path)).toEqual(['', 'spec', 'spec.template', 'status'])
  const titles = kindSections(set).map(({ title }) => title)
  expect(titles).toContain('spec.hotBackup.mode')
  expect(titles).toContain('spec.template')
  expect(titles.filter(title => title.startsWith('spec.template.'))).toEqual([])
})
