import { Registry } from 'prom-client'
import { expect, it } from 'vitest'
import type { BackupPodSetStatus } from '../api/backuppodset.ts'
import { createSetMetrics } from './metrics.ts'
import type { Outcome } from './plan.ts'
import { makePod } from './testing/snapshots.ts'

const slot = (protection: 'Frozen' | 'None') => ({
  ...{ slot: 0, pod: 'p', epoch: 1, ready: true, protection },
  ...{ savedAt: '2026-01-01T00:00:00Z', intervalSeconds: 10 },
})
const status: BackupPodSetStatus = { replicas: 1, readyReplicas: 1, slots: [slot('Frozen')] }

const now = Date.parse('2026-01-01T00:00:07Z')

it('the metrics of sets end with the term, and begin again with the next one', async () => {
  const registry = new Registry()
  const metrics = createSetMetrics(registry)
  const ofSet = async () => (await registry.metrics()).split('\n').filter(line => line.includes('set="bps"'))
  metrics.counted({ namespace: 'a', name: 'bps' }, status, now)
  const before = await ofSet()
  expect(before.map(line => line.slice(0, line.indexOf('{')))).toEqual(
    expect.arrayContaining([
      ...['understudy_pods', 'understudy_pods_ready', 'understudy_slots'],
      ...['understudy_generation_age_seconds', 'understudy_checkpoint_interval_seconds'],
    ]),
  )
  expect(before.find(line => line.startsWith('understudy_generation_age_seconds'))).toMatch(/ 7$/)
  metrics.reset()
  expect(await ofSet()).toEqual([])
  expect(await registry.metrics()).toContain(
    'understudy_state_lost_total{namespace="",set="",how="replaced"} 0',
  )
  metrics.counted({ namespace: 'a', name: 'bps' }, status, now)
  expect(await ofSet()).toEqual(before)
})

it('a set without primaries, as a suspended one, has no unprotected slots', async () => {
  const registry = new Registry()
  const metrics = createSetMetrics(registry)
  const set = { namespace: 'a', name: 'bps' }
  metrics.counted(set, { ...status, slots: [slot('None')] }, now)
  expect(await registry.metrics()).toMatch(/understudy_slots\{.*protection="None"\} 1/)
  metrics.counted(set, { replicas: 0, readyReplicas: 0, slots: [] }, now)
  expect(await registry.metrics()).not.toMatch(/understudy_slots\{.*set="bps"/)
})

it('a set has the number of its slots that their heirs may take without the operator', async () => {
  const registry = new Registry()
  const metrics = createSetMetrics(registry)
  const set = { namespace: 'a', name: 'bps' }
  const slots = [{ ...slot('Frozen'), grantedTo: 'h' }, slot('Frozen')]
  metrics.counted(set, { ...status, slots }, now)
  expect(await registry.metrics()).toMatch(/understudy_slots_granted\{.*set="bps"\} 1/)
  metrics.forget(set)
  expect(await registry.metrics()).not.toMatch(/understudy_slots_granted\{.*set="bps"/)
})

it('D19.metrics: a set has its failovers and its losses, from 0 on, until it is deleted', async () => {
  const registry = new Registry()
  const metrics = createSetMetrics(registry)
  const set = { namespace: 'a', name: 'bps' }
  const linesOf = async (name: string) =>
    (await registry.metrics()).split('\n').filter(line => line.startsWith(name) && line.includes('set="bps"'))
  metrics.counted(set, status, now)
  expect(await linesOf('understudy_state_lost_total')).toContain(
    'understudy_state_lost_total{namespace="a",set="bps",how="replaced"} 0',
  )
  const failedOver: Outcome = {
    type: 'done',
    action: {
      ...{ type: 'convert', pod: makePod('h', 'hotbackup'), to: 'primary', wake: false },
      role: {
        ...{ slot: 0, epoch: 2, startsEmpty: 'Gone' },
        replaces: { name: 'p0', slot: 0, epoch: 1, reason: 'PodDeleted', seenAt: 1_000 },
      },
    },
    pod: undefined,
  }
  metrics.acted(set, [failedOver], 1_250)
  expect(await linesOf('understudy_failover_duration_seconds_sum')).toEqual([
    'understudy_failover_duration_seconds_sum{namespace="a",set="bps",reason="PodDeleted"} 0.25',
  ])
  expect(await linesOf('understudy_state_lost_total')).toContain(
    'understudy_state_lost_total{namespace="a",set="bps",how="replaced"} 1',
  )
  metrics.forget(set)
  expect(await linesOf('understudy_')).toEqual([])
  // A wake-up that ends after its set was deleted.
  metrics.acted(undefined, [failedOver], 1_250)
  expect(await linesOf('understudy_')).toEqual([])
  expect(await registry.metrics()).toContain(
    'understudy_state_lost_total{namespace="",set="",how="replaced"} 1',
  )
})
