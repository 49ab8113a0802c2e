import { expect, it } from 'vitest'
import type { BackupPodSet } from '../api/backuppodset.ts'
import type { SlotStatus } from '../api/slot-status.ts'
import { createFakeClock } from '../kube/clock.ts'
import { setCondition } from '../kube/conditions.ts'
import { fakeApi, makeObject } from '../kube/testing/fake-api.ts'
import { createReporter } from './report.ts'

const slot: SlotStatus = {
  ...{ slot: 0, pod: 'p', epoch: 1, ready: true, generation: 0, protection: 'None' },
}

it('R16: what goes on in every interval of a checkpoint is written once a minute, a first one and its protection sooner', async () => {
  const clock = createFakeClock()
  const api = fakeApi({ replace: async (_, __, set) => makeObject(set) })
  const reporter = createReporter(api, clock)
  let current: BackupPodSet = {
    metadata: { name: 'web', namespace: 'default', uid: 'set', resourceVersion: '1' },
    spec: {} as BackupPodSet['spec'],
  }
  const report = async (over: Partial<SlotStatus>) => {
    const next = { replicas: 1, slots: [{ ...slot, ...over }] }
    const { written, againAfterMs } = await reporter.report(current, next, new AbortController().signal)
    if (written !== undefined) current = written
    return written === undefined ? againAfterMs : 'written'
  }
  expect(await report({})).toBe('written')
  expect(await report({ generation: 1, savedAt: '2026-01-01T00:00:00Z' })).toBe(3_000)
  await clock.advance(3_000)
  expect(await report({ generation: 1, savedAt: '2026-01-01T00:00:00Z' })).toBe('written')
  const at = (second: number) => ({ generation: second, savedAt: `2026-01-01T00:00:${second}Z` })
  expect(await report(at(10))).toBe(60_000)
  await clock.advance(50_000)
  expect(await report(at(50))).toBe(10_000)
  expect(await report({ ...at(50), protection: 'Frozen' })).toBe('written')
  await clock.advance(60_000)
  expect(await report({ ...at(59), protection: 'Frozen' })).toBe('written')
})

it('D19.columns: pods that become ready are written together, although columns count them', async () => {
  const clock = createFakeClock()
  const api = fakeApi({ replace: async (_, __, set) => makeObject(set) })
  const reporter = createReporter(api, clock)
  const columns = { replicas: '2/2', hotbackups: '0/0', coldbackups: '0/0', readyBackups: '0/0' }
  const statusWith = (ready: number) => ({
    ...{ replicas: 2, readyReplicas: ready, summary: { ...columns, ready: `${ready}/2` } },
    conditions: setCondition([], {
      ...{ type: 'Available', status: ready > 0 ? 'True' : 'False', reason: 'Test', message: '' },
      ...{ observedGeneration: 1, now: ready },
    }),
  })
  const current: BackupPodSet = {
    metadata: { name: 'web', namespace: 'default', uid: 'set', resourceVersion: '1' },
    spec: { template: {} },
  }
  const first = await reporter.report(current, statusWith(0), new AbortController().signal)
  expect(first.written).toBeDefined()
  const next = first.written ?? current
  expect(await reporter.report(next, statusWith(1), new AbortController().signal)).toEqual({
    ...{ written: undefined, againAfterMs: 3_000 },
  })
  await clock.advance(3_000)
  const last = await reporter.report(next, statusWith(2), new AbortController().signal)
  expect(last.written?.status?.summary?.ready).toBe('2/2')
})
