import { Registry } from 'prom-client'
import { expect, it } from 'vitest'
import type { BackupPodSetStatus } from '../api/backuppodset.ts'
import { createSetMetrics } from './metrics.ts'

const slot = (protection: 'Frozen' | 'None') => ({
  ...{ slot: 0, pod: 'p', epoch: 1, ready: true, protection },
  ...{ savedAt: '2026-01-01T00:00:00Z', intervalSeconds: 10 },
})
const status: BackupPodSetStatus = { replicas: 1, readyReplicas: 1, slots: [slot('Frozen')] }

const now = Date.parse('2026-01-01T00:00:07Z')

it('the gauges of sets end with the term, and begin again with the next one; counters stay', async () => {
  const registry = new Registry()
  const metrics = createSetMetrics(registry)
  const ofSet = async () => (await registry.metrics()).split('\n').filter(line => line.includes('name="bps"'))
  metrics.counted({ namespace: 'a', name: 'bps' }, status, now)
  const before = await ofSet()
  expect(before.map(line => line.slice(0, line.indexOf('{')))).toEqual(
    expect.arrayContaining([
      ...['backuppodset_pods', 'backuppodset_pods_ready', 'bps_slots'],
      ...['bps_generation_age_seconds', 'bps_checkpoint_interval_seconds'],
    ]),
  )
  expect(before.find(line => line.startsWith('bps_generation_age_seconds'))).toMatch(/ 7$/)
  metrics.reset()
  expect(await ofSet()).toEqual([])
  expect(await registry.metrics()).toContain('bps_state_lost_total{how="replaced"} 0')
  metrics.counted({ namespace: 'a', name: 'bps' }, status, now)
  expect(await ofSet()).toEqual(before)
})

it('a set without primaries, as a suspended one, has no unprotected slots', async () => {
  const registry = new Registry()
  const metrics = createSetMetrics(registry)
  const set = { namespace: 'a', name: 'bps' }
  metrics.counted(set, { ...status, slots: [slot('None')] }, now)
  expect(await registry.metrics()).toMatch(/bps_slots\{.*protection="None"\} 1/)
  metrics.counted(set, { replicas: 0, readyReplicas: 0, slots: [] }, now)
  expect(await registry.metrics()).not.toMatch(/bps_slots\{.*name="bps"/)
})
