import { expect, test } from 'vitest'
import { annotations } from '../../api/labels.ts'
import { drainOf, leavingOf } from '../../api/leaving.ts'
import type { Node } from '../../kube/resources.ts'
import { takesMoves } from './move.ts'

const node = (
  over: Partial<Pick<Node, 'spec' | 'status'>>,
  notes: Readonly<Record<string, string>> = {},
): Node => ({
  metadata: { name: 'n', uid: 'n', resourceVersion: '1', annotations: notes },
  ...over,
})
const tainted = (key: string): Node => node({ spec: { taints: [{ key, effect: 'NoSchedule' }] } })
const condition = (status: string): Node =>
  node({ status: { conditions: [{ type: 'DrainInProgress', status }] } })

test.each<readonly [string, Node | undefined, boolean]>([
  ['a cordoned node', node({ spec: { unschedulable: true } }), true],
  ['the taint of a cordoned node', tainted('node.kubernetes.io/unschedulable'), true],
  ['a node that the autoscaler removes', tainted('ToBeDeletedByClusterAutoscaler'), true],
  ['a node that Karpenter removes', tainted('karpenter.sh/disrupted'), true],
  ['a node that is drained', condition('True'), true],
  ['a node that was drained', condition('False'), false],
  ['a node with the taint of its owner', tainted('example.com/gpu'), false],
  ['a node under pressure', tainted('node.kubernetes.io/memory-pressure'), false],
  ['a node without news', node({}), false],
  ['an unknown node', undefined, false],
])('D17.rule %s', (_, each, leaves) => {
  expect([leavingOf(each) !== undefined, drainOf(each) !== undefined]).toEqual([leaves, leaves])
  expect(takesMoves(each, {})).toBe(each !== undefined && !leaves)
})

test('D17.rule an administrator keeps primaries on a cordoned node, which takes no slots all the same', () => {
  const kept = node({ spec: { unschedulable: true } }, { [annotations.stayRequested]: 'debugging' })
  expect([drainOf(kept), takesMoves(kept, {})]).toEqual([undefined, false])
})

test('D17.rule nothing moves away from a node that is out of service', () => {
  const taints = [{ key: 'node.kubernetes.io/out-of-service', effect: 'NoExecute' }]
  expect(drainOf(node({ spec: { unschedulable: true, taints } }))).toBeUndefined()
})
