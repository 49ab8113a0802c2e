import { expect, it } from 'vitest'
import { makeObject } from '../kube/testing/fake-api.ts'
import { legacyContainers, legacyDeath, legacyMemory } from './legacy-serving.ts'
import { podConditions } from './pod-contract.ts'
import {
  formatServingRecord,
  longestRecord,
  servingRecordAnnotation,
  servingRecordOf,
} from './serving-record.ts'

const memory = { generation: 29, takenAt: '2026-01-01T00:00:01.250Z' }
const containers = { app: 'containerd://1', side: 'containerd://2' }

const recordIn = (message: string, annotation?: string) =>
  servingRecordOf(
    makeObject({
      metadata: {
        ...(annotation !== undefined && { annotations: { [servingRecordAnnotation]: annotation } }),
      },
      status: { conditions: [{ type: podConditions.serving, status: 'True', message }] },
    }),
  )

const left = { ...memory, epoch: 3, usable: 'Staged', at: 1_767_225_602_000 } as const

it.each([
  { containers, memory },
  { containers },
  { diedWith: 'ns/set/0/life' },
  { diedWith: 'ns/set/0/life', left },
  { diedWith: 'ns/set/0/life', byItself: false as const },
  {},
])('D7.record: the facts behind a condition come back as they were written: %j', record => {
  expect(recordIn('for people', formatServingRecord(record, 'for people'))).toEqual(record)
})

it('D7.record: an annotation of an earlier condition counts for nothing', () => {
  const old = formatServingRecord({ diedWith: 'ns/set/0/life' }, 'it has ended')
  expect(recordIn('epoch 3', old)).toEqual({})
})

it.each(['', '{', '[]', '{"version":2,"message":"m","diedWith":"x"}', '{"version":1}'])(
  'D7.record: one that cannot be read counts for nothing: %s',
  annotation => {
    expect(recordIn('m', annotation)).toEqual({})
  },
)

it('D7.record: fields of another type count for nothing', () => {
  const given = { version: 1, message: 'm', containers: { app: 7 }, memory: { generation: 'x' }, diedWith: 1 }
  expect(recordIn('m', JSON.stringify(given))).toEqual({})
  for (const wrong of [
    { epoch: '3' },
    { generation: 0 },
    { generation: -1 },
    { takenAt: 'x' },
    { usable: 'Frozen' },
    { at: 'x' },
  ])
    expect(recordIn('m', formatServingRecord({ left: { ...left, ...Object(wrong) } }, 'm'))).toEqual({})
})

it('D7.record: a record that is too long counts for nothing, and no agent writes one', () => {
  const given = formatServingRecord({ diedWith: 'x' }, 'm') ?? ''
  const padded = (length: number) => `${given.slice(0, -1)}${' '.repeat(length - given.length)}}`
  expect(recordIn('m', padded(longestRecord))).toEqual({ diedWith: 'x' })
  expect(recordIn('m', padded(longestRecord + 1))).toEqual({})
  expect(formatServingRecord({}, 'm'.repeat(longestRecord))).toBeUndefined()
  const names = Array.from({ length: 50 }, (_, n) => `${n}`.padStart(63, 'a'))
  const many = Object.fromEntries(names.map(name => [name, `containerd://${'0'.repeat(64)}`]))
  expect(formatServingRecord({ containers: many, memory }, legacyContainers(many))).toBeDefined()
})

it('D7.record: a pod without the condition has no facts', () => {
  const annotations = { [servingRecordAnnotation]: formatServingRecord({ diedWith: 'x' }, '') ?? '' }
  expect(servingRecordOf(makeObject({ metadata: { annotations } }))).toEqual({})
})

it('D7.record: an agent of the version before says them in its message', () => {
  const message = `epoch 2: ${legacyContainers(containers)}`
  expect(recordIn(message)).toEqual({ containers })
  expect(recordIn(`${message}${legacyMemory(memory)}`)).toEqual({ containers, memory })
  expect(recordIn(`container app (containerd://1) has ended${legacyDeath('ns/set/0/life')}`)).toEqual({
    diedWith: 'ns/set/0/life',
  })
})

it.each(['', 'epoch 2', 'x; generation many of 2026-01-01', 'x; generation 1 of noon'])(
  'D7.record: a message without them says nothing: %j',
  message => expect(recordIn(message)).toEqual({}),
)
