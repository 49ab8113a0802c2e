import { expect, it } from 'vitest'
import { limits } from '../../api/backuppodset.ts'
import type { PodView } from '../snapshot.ts'
import { makePod } from '../testing/snapshots.ts'
import { pulledSlotFacts } from './status.ts'

it('a set with backups on hundreds of nodes has a status that can be stored', () => {
  const primary = makePod('p0', 'primary', { slot: 0 })
  const backups = Array.from({ length: 300 }, (_, index) =>
    makePod(`h${index}`, 'hotbackup', { node: `n${index}` }),
  )
  const state = { generation: 3, takenAt: 0, takenAtWall: 0, seconds: 0.1, holder: { uid: primary.uid } }
  const facts = {
    pull: { intervalMs: 1_000, timeoutMs: 1_000 },
    stateOf: () => state,
    problemOf: () => undefined,
    storeHealthy: undefined,
    monotonicNow: 1_000,
  } as unknown as Parameters<typeof pulledSlotFacts>[0]
  const { usableOn, usableOnCount, protection, savedAt } = pulledSlotFacts(facts, 0, primary, [
    primary,
    ...backups,
  ])
  expect(usableOn).toHaveLength(limits.usableOn)
  expect(usableOnCount).toBe(300)
  expect(protection).toBe('Warm')
  expect(savedAt).toBe('1970-01-01T00:00:00.000Z')
})

it('the protection by a pulled state is the best that a backup could do', () => {
  const primary = makePod('p0', 'primary', { slot: 0 })
  const protection = (pods: readonly PodView[], stateOf = () => saved) =>
    pulledSlotFacts({ ...facts, stateOf } as typeof facts, 0, primary, [primary, ...pods]).protection
  const saved: object | undefined = { generation: 3, takenAtWall: 0, holder: { uid: primary.uid } }
  const facts = { pull: { intervalMs: 1_000 } } as Parameters<typeof pulledSlotFacts>[0]
  const cold = makePod('c0', 'coldbackup', { gate: 'waiting' })
  expect(protection([makePod('h0', 'hotbackup'), cold])).toBe('Warm')
  expect(protection([makePod('h0', 'hotbackup', { ready: false }), cold])).toBe('Cold')
  expect(protection([])).toBe('None')
  expect(protection([cold], () => undefined as never)).toBe('None')
})
