/** How the chart is made. test/apiserver/helm compares the whole chart with the kustomizations. */
import { describe, expect, test } from 'vitest'
import { changedAt, withValues } from '../../../deploy/chart/edits.ts'
import { idOf, type KubeObject, type Part, withComponent } from '../../../deploy/chart/merge.ts'
import { withNamespaces } from '../../../deploy/chart/namespaces.ts'
import { createTokens } from '../../../deploy/chart/tokens.ts'
import { valuesFile } from '../../../deploy/chart/values.ts'

const object = (spec: KubeObject[string], name = 'a'): KubeObject => ({
  ...{ apiVersion: 'v1', kind: 'Thing', metadata: { name } },
  spec,
})
const part = (plain: KubeObject): Part => ({ plain, tree: plain, conditions: [], file: 'base' })
const component = (name: string) => ({ name, condition: `.Values.${name}` })

/** Adds components one after the other: each has all objects that it leads to. */
function merged(
  first: readonly KubeObject[],
  ...steps: readonly (readonly [string, readonly KubeObject[]])[]
) {
  const tokens = createTokens()
  const parts = steps.reduce<readonly Part[]>(
    (before, [name, next]) => withComponent(before, next, component(name), tokens),
    first.map(part),
  )
  return parts.map(({ tree, conditions, file }) => ({ file, conditions, text: tokens.write(tree) }))
}

describe('D19.chart: what a component changes stands behind its value', () => {
  const text = (spec: string) => `apiVersion: v1\nkind: Thing\nmetadata:\n  name: a\nspec:\n${spec}`

  test('items at the end of a list, of several components', () => {
    const [only] = merged([object(['x'])], ['b', [object(['x', 'y'])]], ['c', [object(['x', 'y', 'z'])]])
    expect(only?.text).toBe(
      text('  - x\n{{- if .Values.b }}\n  - y\n{{- end }}\n{{- if .Values.c }}\n  - z\n{{- end }}'),
    )
  })

  test('a change behind items of another component', () => {
    const item = (value: string) => ({ is: value })
    const [only] = merged(
      [object([item('x')])],
      ['b', [object([item('x'), item('y')])]],
      ['c', [object([item('x'), item('z')])]],
    )
    expect(only?.text).toContain('is: {{ if .Values.c }}z{{ else }}y{{ end }}')
  })

  test('objects that are added or removed', () => {
    const [a, b] = [object(1), object(2, 'b')]
    expect(merged([a], ['b', [a, b]], ['c', [b]])).toMatchObject([
      { file: 'base', conditions: ['not (.Values.c)'] },
      { file: 'b', conditions: ['.Values.b'] },
    ])
  })

  test.each<[string, KubeObject[string], KubeObject[string]]>([
    ['a new field', { x: 1 }, { x: 1, y: 2 }],
    ['a removed field', { x: 1, y: 2 }, { x: 1 }],
    ['another field', { x: 1 }, { y: 1 }],
    ['a removed item', ['x', 'y'], ['x']],
    ['a number', { x: 1 }, { x: 2 }],
    ['another shape', { x: ['a'] }, { x: 'a' }],
  ])('%s is refused', (_, before, after) => {
    const message = 'the chart cannot express what a component changes: b: Thing a'
    expect(() => merged([object(before)], ['b', [object(after)]])).toThrow(message)
  })

  test('two components that replace the same word are refused', () => {
    const steps = ['b', 'c'].map(name => [name, [object({ x: name })]] as const)
    expect(() => merged([object({ x: 'a' })], ...steps)).toThrow('cannot express')
  })
})

describe('D19.chart: templates', () => {
  test('braces of manifests are no templates', () => {
    expect(createTokens().write({ a: '{{ $labels.pod }}', b: 'x {{y}}' })).toBe(
      `a: "{{ "{{" }} $labels.pod }}"\nb: x {{ "{{" }}y}}`,
    )
  })

  test('a token of lines knows its indentation, in lists and in maps', () => {
    const tokens = createTokens()
    const lines = (name: string) => tokens.lines(indent => `${name} ${indent}`)
    expect(tokens.write({ a: { b: 1, [lines('map')]: null, c: ['d', lines('list')] } })).toBe(
      'a:\n  b: 1\nmap 2\n  c:\n    - d\nlist 4',
    )
  })

  test('namespaces are replaced in fields and expressions, and names of objects are not', () => {
    const tokens = createTokens()
    const policy = { ...object(null, 'understudy-agents'), kind: 'ValidatingAdmissionPolicy' }
    const spec = { namespace: 'understudy-agents', a: "n == 'understudy-system'", b: 'understudy-systems' }
    const tree = withNamespaces({ ...policy, spec }, policy, tokens)
    expect(tokens.write(tree).split('\n').slice(2)).toEqual([
      'metadata:',
      '  name: understudy-agents',
      'spec:',
      '  namespace: {{ $.Values.agents.namespace | quote }}',
      "  a: n == '{{ $.Release.Namespace }}'",
      '  b: understudy-systems',
    ])
  })

  test('an object or field that has a value in the chart and is gone is refused', () => {
    expect(() => withValues([part(object(1))], createTokens())).toThrow('objects that are gone: ')
    expect(() => changedAt({ a: [{ b: 1 }] }, ['a', 0, 'c'], () => 2)).toThrow('there is no c in {"b":1}')
    expect(() => changedAt({ a: [] }, ['a', 0], () => 2)).toThrow('there is no 0')
    expect(changedAt({ a: [{ b: 1 }] }, ['a', 0, 'b'], () => 2)).toEqual({ a: [{ b: 2 }] })
  })

  test('an object is known by its kind, namespace and name', () => {
    expect(idOf({ ...object(1), metadata: { name: 'a', namespace: 'b' } })).toBe('Thing b a')
  })

  test('values.yaml tells each value below its description', () => {
    const properties = {
      a: { description: 'Flag.', properties: { b: { description: 'Word.', default: '' } } },
    }
    expect(valuesFile({ properties }).split('\n').slice(1)).toEqual([
      '# Flag.',
      'a:',
      '  # Word.',
      '  b: ""',
      '',
    ])
  })
})
