import { readFileSync } from 'node:fs'
import * as clientNode from '@kubernetes/client-node'
import { describe, expect, it } from 'vitest'
import { parse, parseAllDocuments } from 'yaml'
import { refusals } from '../src/api/errors.ts'
import { choice, integer, object, type Schema, type SchemaOf, text } from '../src/api/schema/build.ts'
import { readPodSchema } from '../src/api/schema/pod-schema.ts'
import { crdFiles } from './generate.ts'
import { firstSentence } from './pod-template.ts'

const committed = crdFiles.map(({ file }) => parse(readFileSync(file, 'utf8')))
const schemas: Schema[] = committed.map(crd => crd.spec.versions[0].schema.openAPIV3Schema)
const schema = schemas[0] as Schema

/** Yields every schema below this one, with its path. */
function* nodes(node: Schema, path = ''): Generator<readonly [string, Schema]> {
  yield [path, node]
  for (const [name, property] of Object.entries((node['properties'] ?? {}) as Record<string, Schema>))
    yield* nodes(property, `${path}.${name}`)
  for (const of of ['items', 'additionalProperties'])
    if (node[of] !== undefined) yield* nodes(node[of] as Schema, `${path}[]`)
}

describe('the CRDs', () => {
  it.each(crdFiles)('$file is what npm run generate writes', ({ file, yaml }) =>
    expect(yaml()).toBe(readFileSync(file, 'utf8')),
  )

  it('fits into the annotation in which kubectl apply remembers it, with a margin for what users add', () => {
    for (const crd of committed) expect(Buffer.byteLength(JSON.stringify(crd))).toBeLessThan(224 * 1024)
  })

  it('D10.bounds: has a bound for every list', () => {
    const lists = schemas.flatMap(each => [...nodes(each)]).filter(([, { type }]) => type === 'array')
    expect(lists.length).toBeGreaterThan(140)
    const unbounded = lists.filter(([, { maxItems }]) => typeof maxItems !== 'number' || maxItems < 1)
    expect(unbounded.map(([path]) => path)).toEqual([])
  })

  it('D10.bounds: names no list in a status whose writer is not known to cut it', () => {
    const lists = schemas
      .flatMap(each => [...nodes(each)])
      .filter(([path, { type }]) => path.startsWith('.status') && type === 'array')
    // Each list is filled beyond its bound in status.test.ts, memory.test.ts, pulled/status.test.ts or report.test.ts.
    expect(lists.map(([path, { maxItems }]) => `${path} ${maxItems}`)).toEqual([
      '.status.primaryPodNames 200',
      '.status.hotbackupPodNames 200',
      '.status.coldbackupPodNames 200',
      '.status.retainedSlots 200',
      '.status.retainedSlots[].keptOn 10',
      '.status.retainedSlots[].unsureOn 10',
      '.status.slots 200',
      '.status.slots[].usableOn 200',
      '.status.failovers 10',
      '.status.conditions 16',
      '.status.cpuFeatures 1024',
      '.status.checks 64',
      '.status.slots 800',
      // As many entries as there are phases and types of conditions.
      '.status.phaseTimes 7',
      '.status.conditions 4',
      '.status.conditions 4',
      // A job names eight pods that give way, and cuts the lists there; one pod has replaced each.
      ...['Ref 8', 'Reservation 8', 'Reservation[].podsRef 8'].map(each => `.status.preemptedPods${each}`),
      '.status.conditions 10',
      ...['Ref 8', 'Reservation 8', 'Reservation[].podsRef 8'].map(each => `.status.preemptedPods${each}`),
      '.status.conditions 10',
      // A reservation has one pod, and two types of conditions.
      ...['.status.currentOwners 1', '.status.conditions 4'],
      ...['.status.currentOwners 1', '.status.conditions 4'],
      // A MigratingPod repeats some conditions of its set.
      '.status.conditions 16',
    ])
  })

  it('describes every field in words', () => {
    const bare = schemas
      .flatMap(each => [...nodes(each)])
      .filter(
        ([path, { description }]) =>
          path !== '' &&
          path !== '.metadata' &&
          !path.endsWith('[]') &&
          (typeof description !== 'string' || description.length < 10 || !description.includes(' ')),
      )
    expect(bare.map(([path, { description }]) => `${path}: ${description}`)).toEqual([])
  })

  it('says in its rules what parsing says', () => {
    const { TemplateMissing: _, ...inRules } = refusals
    const messages = [...nodes(schema)].flatMap(([, node]) =>
      ((node['x-kubernetes-validations'] ?? []) as { message: string }[]).map(({ message }) => message),
    )
    expect([...new Set(messages)].sort()).toEqual(
      Object.values(inRules)
        .map(({ message }) => message)
        .sort(),
    )
  })

  it('has no default inside the template but those of keys: another one would change hashes and roll every set', () => {
    const defaulted = [...nodes(schema)]
      .filter(([path, node]) => path.startsWith('.spec.template') && node['default'] !== undefined)
      .map(([path]) => path.replace(/^\.spec\.template\.spec\./, ''))
    expect(defaulted.sort()).toEqual([
      'containers[].ports[].protocol',
      'imagePullSecrets[].name',
      'initContainers[].ports[].protocol',
    ])
  })
})

const sample = (name: string) => {
  const documents = parseAllDocuments(readFileSync(new URL(`../samples/${name}`, import.meta.url), 'utf8'))
  return documents.map(it => it.toJS()).find(({ kind }) => kind === 'BackupPodSet')
}

it('samples/all-fields.yaml has all fields but those of samples/http-state.yaml and samples/clones.yaml', () => {
  const all = sample('all-fields.yaml')
  const { source, http } = sample('http-state.yaml').spec.checkpoint
  const { cloneFrom } = sample('clones.yaml').spec
  const given = { ...all.spec, cloneFrom, checkpoint: { ...all.spec.checkpoint, source, http } }
  const spec = (schema['properties'] as Record<string, Schema>)['spec'] as Schema
  for (const [path, node] of nodes(spec))
    if (node['properties'] !== undefined && !path.startsWith('.template')) {
      const value = path
        .split('.')
        .filter(key => key !== '')
        .reduce<Schema | undefined>(
          (at, key) =>
            key.endsWith('[]')
              ? (at?.[key.slice(0, -2)] as Schema[] | undefined)?.[0]
              : (at?.[key] as Schema | undefined),
          given,
        )
      expect(Object.keys(value ?? {}).sort(), `spec${path}`).toEqual(
        Object.keys(node['properties'] as Schema).sort(),
      )
    }
})

describe('the types', () => {
  it('of the pod template have the fields of the schema, all the way down', () => {
    const differences: string[] = []
    compareWithModel('V1PodSpec', readPodSchema(), 'spec', differences)
    expect(differences).toEqual([])
  })

  it('of everything else do not compile when they differ from the schema', () => {
    type Sample = { readonly size?: number; readonly mode: 'A' | 'B' }
    const size = integer('Size.', { min: 0, max: 1 }, 0)
    object<Sample>({ size, mode: choice('Mode.', ['A', 'B']) }, { mode: true })
    // @ts-expect-error A field is missing.
    object<Sample>({ size }, { mode: true })
    // @ts-expect-error There is a field too many.
    object<Sample>({ size, mode: choice('Mode.', ['A', 'B']), more: size }, { mode: true })
    // @ts-expect-error Another type.
    object<Sample>({ size: text('Size.'), mode: choice('Mode.', ['A', 'B']) }, { mode: true })
    // @ts-expect-error A value is missing.
    object<Sample>({ size, mode: choice('Mode.', ['A']) }, { mode: true })
    // @ts-expect-error A value too many.
    object<Sample>({ size, mode: choice('Mode.', ['A', 'B', 'C']) }, { mode: true })
    // @ts-expect-error mode is always there.
    object<Sample>({ size, mode: choice('Mode.', ['A', 'B']) }, {})
    // @ts-expect-error size is not.
    object<Sample>({ size, mode: choice('Mode.', ['A', 'B']) }, { mode: true, size: true })
    const wide: SchemaOf<string> = text('Text.')
    expect(wide).toEqual({ type: 'string', description: 'Text.' })
  })
})

interface Model {
  getAttributeTypeMap(): { baseName: string; type: string; format: string }[]
}

/** Collects each field that only client-node's model class has, or only the schema. */
function compareWithModel(type: string, node: Schema, path: string, differences: string[]): void {
  const item = /^(?:Array<|\{ \[key: string\]: )(.+?)(?:>|; \})$/.exec(type)
  if (item?.[1] !== undefined) {
    const inner = (node['items'] ?? node['additionalProperties']) as Schema | undefined
    if (inner === undefined) differences.push(`${path}: ${type} is not a list or map in the schema`)
    else compareWithModel(item[1], inner, `${path}[]`, differences)
    return
  }
  const model: Model | undefined = Reflect.get(clientNode, type)
  if (type === 'IntOrString' || type === 'V1ObjectMeta' || typeof model?.getAttributeTypeMap !== 'function') {
    const expected = { number: ['integer', 'number'], boolean: ['boolean'], string: ['string', undefined] }[
      type
    ]
    if (expected !== undefined && !expected.includes(node['type'] as string))
      differences.push(`${path}: ${type} in the types, ${node['type']} in the schema`)
    return
  }
  const properties = node['properties'] as Record<string, Schema>
  const fields = new Map(model.getAttributeTypeMap().map(field => [field.baseName, field.type]))
  for (const name of new Set([...fields.keys(), ...Object.keys(properties)])) {
    const [fieldType, property] = [fields.get(name), properties[name]]
    if (fieldType === undefined) differences.push(`${path}.${name}: not in the types`)
    else if (property === undefined) differences.push(`${path}.${name}: not in the schema`)
    else compareWithModel(fieldType, property, `${path}.${name}`, differences)
  }
}

describe('firstSentence', () => {
  it.each([
    ['Name of the pod. Must be unique. Cannot be updated.', 'Name of the pod'],
    ['Optional: Duration in seconds, e.g. 3.5 of them.', 'Duration in seconds, e.g. 3.5 of them'],
    ['Required. A list of terms. The terms are ORed.', 'A list of terms'],
    ['Deprecated. Use serviceAccountName instead. More.', 'Deprecated. Use serviceAccountName instead'],
    ['no full stop', 'no full stop'],
  ])('%s', (text, short) => expect(firstSentence(text)).toBe(short))

  it('is cut at a word when it is too long', () => {
    const short = firstSentence('abcd '.repeat(100))
    expect(short.length).toBeLessThanOrEqual(304)
    expect(short).toMatch(/abcd \.\.\.$/)
  })
})
