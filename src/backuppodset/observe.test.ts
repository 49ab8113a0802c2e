import { expect, it } from 'vitest'
import { createFakeClock } from '../kube/clock.ts'
import type { Pod } from '../kube/resources.ts'
import { createStore } from '../kube/store.ts'
import { observe, podIndexes } from './observe.ts'
import { makeSet } from './testing/snapshots.ts'

it('the epoch of a primary that vanished while nobody led is known from the last report', () => {
  const { snapshot } = observe(
    makeSet(),
    { observedGeneration: 1, slots: [{ slot: 2, pod: 'gone', epoch: 5, ready: true }] },
    {
      pods: createStore<Pod>({ indexes: podIndexes }),
      clock: createFakeClock(),
      losses: { note: () => {}, of: () => new Map(), repaired: () => {}, forget: () => {} },
      isDeleted: () => false,
      wakening: () => undefined,
    },
  )
  expect(snapshot.epochs.get(2)).toBe(5)
})
