import { expect, it } from 'vitest'
import { labelNamesOf } from '../../../test/support/label-names.ts'
import { createMetrics } from '../../kube/metrics.ts'
import type { DiskKeeper } from '../storage/keeper.ts'
import { createBudgetMetrics } from '../storage/metrics.ts'
import { createAgentMetrics } from './metrics.ts'

/** Labels of the kit and of what it counts there: kinds of things, never single objects. */
const ofTheKit = [
  'code',
  'controller',
  'host',
  'method',
  'name',
  'priority',
  'resource',
  'result',
  'type',
  'verb',
]
const ofAgents = ['duty', 'phase', 'reason', 'role', 'tier', 'verdict']

it('D10.metrics: what anybody may read of an agent names no namespace, set, slot or pod', () => {
  const { registry } = createMetrics({ process: false })
  const known = new Set(registry.getMetricsAsArray().map(({ name }) => name))
  createAgentMetrics(registry)
  createBudgetMetrics(registry, { bytes: 0, budget: 0 }, undefined, () => undefined)
  const labelsOf = (isOwn: boolean) => [
    ...new Set(
      registry
        .getMetricsAsArray()
        .filter(({ name }) => known.has(name) !== isOwn)
        .flatMap(labelNamesOf),
    ),
  ]
  expect(labelsOf(true).sort()).toEqual(ofAgents)
  expect(labelsOf(false).sort()).toEqual(ofTheKit)
})

it('D10.disk-share: the metric of the disk has each reason once, and no series while everything is written', async () => {
  const reasonsOf = async (
    keeper: Pick<DiskKeeper, 'trouble' | 'refusals'> | undefined,
  ): Promise<readonly (readonly [string | number | undefined, number])[]> => {
    const { registry } = createMetrics({ process: false })
    createBudgetMetrics(registry, { bytes: 0, budget: 0 }, undefined, () => keeper)
    const metric = await registry.getSingleMetric('understudy_generations_disk_trouble')?.get()
    return (metric?.values ?? []).map(({ labels, value }) => [labels['reason'], value])
  }
  const trouble = { reason: 'DiskFull', message: 'no room' }
  const refusals = new Set(['DiskShareFull'])
  expect(await reasonsOf(undefined)).toEqual([])
  expect(await reasonsOf({ trouble: undefined, refusals: new Set() })).toEqual([])
  expect(await reasonsOf({ trouble: undefined, refusals })).toEqual([['DiskShareFull', 1]])
  expect(await reasonsOf({ trouble, refusals })).toEqual([
    ['DiskFull', 1],
    ['DiskShareFull', 1],
  ])
})
