import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type KubeObject, keyOf } from './object.ts'
import { type Change, createStore } from './store.ts'

interface Thing extends KubeObject {
  readonly note?: string
}

const thing = (name: string, version: number, fields: { uid?: string; node?: string } = {}): Thing => ({
  metadata: {
    name,
    namespace: 'ns',
    uid: fields.uid ?? `uid-${name}`,
    resourceVersion: String(version),
    ...(fields.node ? { labels: { node: fields.node } } : {}),
  },
})

const byNode = { node: (object: Thing) => [object.metadata.labels?.['node'] ?? []].flat() }

function recorded(store: ReturnType<typeof createStore<Thing>>) {
  const changes: string[] = []
  store.subscribe(({ type, object, initial }) => {
    changes.push(`${type} ${object.metadata.name}/${object.metadata.uid}${initial ? ' initial' : ''}`)
  })
  return changes
}

describe('changes', () => {
  test('the first list is initial, later ones are differences', () => {
    const store = createStore<Thing>()
    const changes = recorded(store)
    store.replace([thing('a', 1), thing('b', 2)], 10n)
    store.replace([thing('a', 1), thing('b', 12), thing('c', 13)], 20n)
    store.replace([thing('c', 13)], 30n)
    expect(changes).toEqual([
      'added a/uid-a initial',
      'added b/uid-b initial',
      'updated b/uid-b',
      'added c/uid-c',
      'deleted a/uid-a',
      'deleted b/uid-b',
    ])
    expect(store.resourceVersion()).toBe(30n)
  })

  test('another uid under the same name is a death and a birth, by event and by list', () => {
    const store = createStore<Thing>()
    store.upsert(thing('a', 1, { uid: 'first' }))
    const changes = recorded(store)
    store.upsert(thing('a', 2, { uid: 'second' }))
    store.replace([thing('a', 3, { uid: 'third' })], 3n)
    expect(changes).toEqual([
      'deleted a/first',
      'added a/second',
      'deleted a/second initial',
      'added a/third initial',
    ])
  })

  test('a late delete of an earlier life tells the last state of the later one', () => {
    const store = createStore<Thing>()
    store.upsert(thing('a', 5, { uid: 'second' }))
    const seen: Change<Thing>[] = []
    store.subscribe(change => seen.push(change))
    store.remove('ns/a', thing('a', 6, { uid: 'first' }))
    expect(seen.map(change => change.object.metadata.uid)).toEqual(['second'])
    store.remove('ns/a')
    expect(seen).toHaveLength(1)
  })

  test('a subscriber sees the store as it is after the change', () => {
    const store = createStore<Thing>()
    const sizes: number[] = []
    store.subscribe(() => sizes.push(store.size))
    store.replace([thing('a', 1), thing('b', 2)], 2n)
    store.remove('ns/a')
    expect(sizes).toEqual([1, 2, 1])
  })

  test('a subscriber that throws costs neither the others nor the store anything, and is reported', () => {
    const store = createStore<Thing>()
    store.subscribe(() => {
      throw new Error('mine')
    })
    const changes = recorded(store)
    expect(() => store.replace([thing('a', 1), thing('b', 2)], 9n)).toThrow(AggregateError)
    expect(changes).toHaveLength(2)
    expect(store.size).toBe(2)
    expect(store.resourceVersion()).toBe(9n)
  })

  test('after the end of a subscription nothing comes any more', () => {
    const store = createStore<Thing>()
    const seen: unknown[] = []
    const end = store.subscribe(change => seen.push(change))
    end()
    store.upsert(thing('a', 1))
    expect(seen).toEqual([])
  })
})

describe('indexes', () => {
  test('follow every change', () => {
    const store = createStore<Thing>({ indexes: byNode })
    const names = (node: string) => store.by('node', node).map(o => o.metadata.name)
    store.upsert(thing('a', 1, { node: 'n1' }))
    store.upsert(thing('b', 2, { node: 'n1' }))
    expect(names('n1')).toEqual(['a', 'b'])
    store.upsert(thing('a', 3, { node: 'n2' }))
    expect([names('n1'), names('n2')]).toEqual([['b'], ['a']])
    store.remove('ns/b')
    expect(names('n1')).toEqual([])
    expect(() => store.by('owner', 'x')).toThrow(TypeError)
  })

  test('are equal to a scan after any history', () => {
    const command = fc.record({
      name: fc.constantFrom('a', 'b', 'c', 'd'),
      uid: fc.constantFrom('1', '2'),
      node: fc.constantFrom('n1', 'n2', undefined),
      what: fc.constantFrom('upsert', 'remove', 'replace'),
    })
    fc.assert(
      fc.property(fc.array(command, { maxLength: 40 }), commands => {
        const store = createStore<Thing>({ indexes: byNode })
        commands.forEach(({ name, uid, node, what }, i) => {
          const object = thing(name, i + 1, { uid, ...(node ? { node } : {}) })
          if (what === 'upsert') store.upsert(object)
          else if (what === 'remove') store.remove(keyOf(object))
          else store.replace([object], BigInt(i + 1))
          for (const value of ['n1', 'n2']) {
            const scanned = store.list().filter(o => o.metadata.labels?.['node'] === value)
            expect(new Set(store.by('node', value))).toEqual(new Set(scanned))
          }
        })
      }),
    )
  })
})

test('versions never go back by advance', () => {
  const store = createStore<Thing>()
  store.advance(7n)
  store.advance(5n)
  expect(store.resourceVersion()).toBe(7n)
})

test('with freeze a reader that writes fails', () => {
  const store = createStore<Thing>({ freeze: true })
  store.upsert(thing('a', 1, { node: 'n1' }))
  const labels = store.get('ns/a')?.metadata.labels as Record<string, string>
  expect(() => {
    labels['node'] = 'n2'
  }).toThrow(TypeError)
})
