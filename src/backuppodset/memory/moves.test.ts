import { expect, it } from 'vitest'
import type { Migration } from '../../api/migration.ts'
import type { Node } from '../../kube/resources.ts'
import { observeMoves } from './moves.ts'

const node = (name: string, disk: string, taint?: string): Node => ({
  metadata: { name, uid: name, resourceVersion: '1', labels: { disk } },
  ...(taint !== undefined && { spec: { taints: [{ key: taint, effect: 'NoSchedule' }] } }),
})

const migration: Migration = {
  metadata: { namespace: 'default', name: 'm', uid: 'm', resourceVersion: '1' },
  spec: { source: { name: 'web-p' }, addedNodeSelector: { disk: 'big' } },
  status: { phase: 'Reserving', source: { uid: 'uid-p', node: 'n1', set: 'web', slot: 0 } },
}

it('MP-32 the bound of a stop is that of the Migration until its controller accepts a longer one', () => {
  const bound = (acceptsDowntime?: boolean) => {
    const spec = { ...migration.spec, maxDowntime: '300ms' }
    const status = { ...migration.status, ...(acceptsDowntime !== undefined && { acceptsDowntime }) }
    const [move] = observeMoves('default/web', {
      migrations: { by: () => [{ ...migration, spec, status }] },
      nodeOf: () => undefined,
      nodes: () => [],
    })
    return move?.maxDowntimeMs
  }
  expect([bound(), bound(false), bound(true)]).toEqual([300, 300, undefined])
})

it('a slot may move to nodes that have the labels and are not cordoned, even if its heir is on a cordoned one', () => {
  const nodes = [
    node('a', 'big'),
    node('b', 'small'),
    node('c', 'big', 'node.kubernetes.io/unschedulable'),
    node('d', 'big', 'dedicated'),
  ]
  const [move] = observeMoves('default/web', {
    migrations: { by: () => [migration] },
    nodeOf: name => nodes.find(({ metadata }) => metadata.name === name),
    nodes: () => ['a', 'b', 'c', 'd', 'unknown'],
  })
  expect([...(move?.nodes ?? [])]).toEqual(['a', 'd'])
})
