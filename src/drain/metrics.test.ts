import { Registry } from 'prom-client'
import { expect, test } from 'vitest'
import { createDrainMetrics } from './metrics.ts'
import type { LeavingPrimary } from './view.ts'

const primary = (over: Partial<LeavingPrimary>): LeavingPrimary => ({
  ...{ namespace: 'shop', set: { name: 'web', uid: 'set' }, slot: 0, name: 'p', uid: 'u', node: 'n1' },
  ...{ why: 'it is cordoned', isMoving: true, waits: undefined, last: undefined, next: 1 },
  ...over,
})

test('MP-34 primaries of drained nodes are counted by node, and those that wait apart from those that move', async () => {
  const registry = new Registry()
  const waits = { migration: 'm', reason: 'SetPaused', message: '' }
  const last = { number: 1, endedAt: 0, reason: 'NoNode', message: '' }
  let all = [primary({}), primary({ waits }), primary({ last }), primary({ isMoving: false, node: 'n2' })]
  createDrainMetrics(registry, () => all)
  const values = async () => {
    const text = await registry.getSingleMetricAsString('understudy_drain_primaries')
    return text.split('\n').filter(line => line !== '' && !line.startsWith('#'))
  }
  expect(await values()).toEqual([
    'understudy_drain_primaries{drained_node="n1",state="moving"} 1',
    'understudy_drain_primaries{drained_node="n1",state="waiting"} 2',
    'understudy_drain_primaries{drained_node="n2",state="waiting"} 1',
  ])
  all = []
  expect(await values()).toEqual([])
})
