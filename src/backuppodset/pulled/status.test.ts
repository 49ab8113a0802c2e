import { expect, it } from 'vitest'
import { limits } from '../../api/backuppodset.ts'
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
