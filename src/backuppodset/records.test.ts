import { expect, it } from 'vitest'
import type { KubeObject } from '../kube/object.ts'
import { createStore } from '../kube/store.ts'
import { createRecords } from './records.ts'

const object = (uid: string, resourceVersion = '1'): KubeObject => ({
  metadata: { namespace: 'default', name: 'web', uid, resourceVersion },
})

function setup() {
  const store = createStore<KubeObject>()
  const ended: string[] = []
  const records = createRecords(store, ({ metadata: { uid } }, life) => {
    life.addEventListener('abort', () => ended.push(uid))
    return { uid, notes: [] as string[] }
  })
  return { store, records, ended, notes: () => records.at('default/web')?.notes }
}

it('a record lasts as long as its object, whatever becomes of that', () => {
  const { store, records, ended, notes } = setup()
  expect([notes(), records.keyOf('a')]).toEqual([undefined, undefined])
  store.upsert(object('a'))
  notes()?.push('lost')
  store.upsert(object('a', '2'))
  expect([notes(), records.keyOf('a'), ended]).toEqual([['lost'], 'default/web', []])
  store.remove('default/web')
  expect([notes(), records.keyOf('a'), ended]).toEqual([undefined, undefined, ['a']])
})

it.each([
  ['deleted and created', (store: ReturnType<typeof setup>['store']) => store.remove('default/web')],
  ['replaced between two observations', () => undefined],
])(
  'an object that is %s under its name inherits nothing, and nothing reaches it from before',
  (_, between) => {
    const { store, records, ended } = setup()
    store.upsert(object('a'))
    const before = records.at('default/web')
    between(store)
    store.upsert(object('b'))
    // A wake-up that outlives its pass ends now.
    before?.notes.push('late')
    expect([records.at('default/web'), ended]).toEqual([{ uid: 'b', notes: [] }, ['a']])
  },
)

it('nothing ends for an object whose record no pass has asked for', () => {
  const { store, ended } = setup()
  store.upsert(object('a'))
  store.remove('default/web')
  expect(ended).toEqual([])
})
