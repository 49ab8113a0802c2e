import { expect, it } from 'vitest'
import type { BackupPodSetStatus } from '../api/backuppodset.ts'
import { createFakeClock } from '../kube/clock.ts'
import type { Pod } from '../kube/resources.ts'
import { createStore } from '../kube/store.ts'
import { observe, podIndexes } from './observe.ts'
import { makeSet } from './testing/snapshots.ts'

const deps = {
  pods: createStore<Pod>({ indexes: podIndexes }),
  clock: createFakeClock(),
  losses: { note: () => {}, of: () => new Map(), repaired: () => {}, forget: () => {} },
  isDeleted: () => false,
  wakening: () => undefined,
}

it('R31: a set that was paused or refused when it was made is new until it has pods', () => {
  const isNew = (status: BackupPodSetStatus) => observe(makeSet(), status, deps).snapshot.isNew
  const times = { lastTransitionTime: '2026-01-01T00:00:00Z', observedGeneration: 1, message: '' }
  const paused = { ...times, type: 'Paused', status: 'True', reason: 'Paused' } as const
  const none = { observedGeneration: 1, replicas: 0, hotbackups: 0, coldbackups: 0 }
  expect(isNew({ observedGeneration: 1 })).toBe(true)
  expect(isNew({ ...none, conditions: [paused] })).toBe(true)
  expect(isNew({ ...none, replicas: 1, conditions: [paused] })).toBe(false)
  expect(isNew({ ...none, conditions: [{ ...paused, status: 'False' }] })).toBe(false)
})

it('the epoch of a primary that vanished while nobody led is known from the last report', () => {
  const { snapshot } = observe(
    makeSet(),
    { observedGeneration: 1, slots: [{ slot: 2, pod: 'gone', epoch: 5, ready: true }] },
    deps,
  )
  expect(snapshot.epochs.get(2)).toBe(5)
})
