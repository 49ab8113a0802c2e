import { expect, it } from 'vitest'
import type { Migration, MigrationPriority } from '../../api/migration.ts'
import type { Node } from '../../kube/resources.ts'
import { createStore } from '../../kube/store.ts'
import { migrationIndexes, observeMoves } from './moves.ts'

const node = (name: string, disk: string, taint?: string): Node => ({
  metadata: { name, uid: name, resourceVersion: '1', labels: { disk } },
  ...(taint !== undefined && { spec: { taints: [{ key: taint, effect: 'NoSchedule' }] } }),
})

const migration: Migration = {
  metadata: { namespace: 'default', name: 'm', uid: 'm', resourceVersion: '1' },
  spec: { source: { name: 'web-p' }, addedNodeSelector: { disk: 'big' } },
  status: { phase: 'Reserving', source: { uid: 'uid-p', node: 'n1', set: 'web', slot: 0 } },
}

const only = (migration: Migration) => (index: string) => (index === 'set' ? [migration] : [])

it('MP-32 the bound of a stop is that of the Migration until its controller accepts a longer one', () => {
  const bound = (acceptsDowntime?: boolean) => {
    const spec = { ...migration.spec, maxDowntime: '300ms' }
    const status = { ...migration.status, ...(acceptsDowntime !== undefined && { acceptsDowntime }) }
    const [move] = observeMoves('default/web', {
      migrations: { by: only({ ...migration, spec, status }) },
      nodeOf: () => undefined,
      nodes: () => [],
    })
    return move?.maxDowntimeMs
  }
  expect([bound(), bound(false), bound(true)]).toEqual([300, 300, undefined])
})

it('moves come in the order of priority, then in the order in which they began', () => {
  const begun = (name: string, at: string, priority?: MigrationPriority): Migration => ({
    metadata: { ...migration.metadata, name, uid: name, creationTimestamp: `2030-01-01T00:00:0${name}Z` },
    spec: { ...migration.spec, ...(priority && { priority }) },
    status: { ...migration.status, phaseTimes: [{ phase: 'Reserving', at: `2030-01-01T00:01:${at}.000Z` }] },
  })
  const all = [
    begun('1', '07'),
    begun('2', '05'),
    begun('3', '05'),
    begun('4', '09', 'SystemCritical'),
    begun('5', '01', 'SystemMaintenance'),
  ]
  const by = (index: string) => (index === 'set' ? all : [])
  const moves = observeMoves('default/web', { migrations: { by }, nodeOf: () => undefined, nodes: () => [] })
  expect(moves.map(({ name }) => name)).toEqual(['4', '2', '3', '1', '5'])
})

it('a pod that is made for a move avoids the nodes on which earlier moves of the primary could not give it the memory', () => {
  const failed = (name: string, uid: string, reason: string, target?: string): Migration => ({
    metadata: { namespace: 'default', name, uid: name, resourceVersion: '1' },
    spec: migration.spec,
    status: {
      phase: 'Failed',
      source: { uid, node: 'n1', set: 'web', slot: 0 },
      ...(target !== undefined && { target: { name: 't', uid: 't', node: target } }),
      conditions: [
        {
          type: 'Succeeded',
          status: 'False',
          reason,
          message: '',
          lastTransitionTime: '',
          observedGeneration: 1,
        },
      ],
    },
  })
  const migrations = createStore<Migration>({ indexes: migrationIndexes })
  for (const each of [
    migration,
    failed('a', 'uid-p', 'TargetFailed', 'n2'),
    failed('b', 'uid-p', 'TargetFailed', 'n2'),
    failed('c', 'uid-p', 'Unschedulable', 'n3'),
    failed('d', 'uid-former', 'TargetFailed', 'n4'),
    failed('e', 'uid-p', 'TargetFailed'),
  ])
    migrations.upsert(each)
  const moves = observeMoves('default/web', { migrations, nodeOf: () => undefined, nodes: () => [] })
  expect(moves.map(({ avoid }) => avoid)).toEqual([['n2']])
})

it('a slot may move to nodes that have the labels and are not cordoned, even if its heir is on a cordoned one', () => {
  const nodes = [
    node('a', 'big'),
    node('b', 'small'),
    node('c', 'big', 'node.kubernetes.io/unschedulable'),
    node('d', 'big', 'dedicated'),
  ]
  const [move] = observeMoves('default/web', {
    migrations: { by: only(migration) },
    nodeOf: name => nodes.find(({ metadata }) => metadata.name === name),
    nodes: () => ['a', 'b', 'c', 'd', 'unknown'],
  })
  expect([...(move?.nodes ?? [])]).toEqual(['a', 'd'])
})
