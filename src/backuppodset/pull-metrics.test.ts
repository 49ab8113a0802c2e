import { Registry } from 'prom-client'
import { expect, it } from 'vitest'
import { createPullMetrics } from '../slot/http-state/metrics.ts'
import { createNamedSets } from '../slot/report/named-sets.ts'
import { createSetMetrics } from './metrics.ts'

it('D10.names: sets that are made and deleted in a loop leave no series behind', async () => {
  const registry = new Registry()
  const named = createNamedSets(10)
  const [pulls, sets] = [createPullMetrics(registry, named), createSetMetrics(registry, named)]
  const namingOf = async (word: string) =>
    (await registry.metrics()).split('\n').filter(line => line.includes(`set="${word}`)).length
  for (let i = 0; i < 100; i += 1) {
    const set = { namespace: 'a', name: `web-${i}` }
    sets.counted(set, { replicas: 1 }, 0)
    for (const result of ['ok', 'PullFailed', 'StateTooLarge', 'StateBudgetExceeded'] as const)
      pulls.pulled(set, result, 1)
    expect(await namingOf('web')).toBeGreaterThan(4)
    sets.forget(set)
    pulls.forget(set)
    expect(await namingOf('web')).toBe(0)
  }
  expect(named.unnamed).toBe(0)
})

it('D10.names: of sets beyond the bound only their number is told', async () => {
  const registry = new Registry()
  const named = createNamedSets(10)
  const [pulls, sets] = [createPullMetrics(registry, named), createSetMetrics(registry, named)]
  for (let i = 0; i < 100; i += 1) {
    pulls.pulled({ namespace: 'a', name: `web-${i}` }, 'ok', 1)
    sets.counted({ namespace: 'a', name: `web-${i}` }, { replicas: 1 }, 0)
  }
  const lines = (await registry.metrics()).split('\n')
  expect(new Set(lines.flatMap(line => /set="(web-\d+)"/.exec(line)?.[1] ?? [])).size).toBe(5)
  expect(lines).toContain('understudy_unnamed_sets 95')
  pulls.reset()
  expect(
    (await registry.metrics()).split('\n').filter(line => line.startsWith('understudy_pulls_total')),
  ).toEqual([])
})
