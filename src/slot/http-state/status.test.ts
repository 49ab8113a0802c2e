import { expect, it } from 'vitest'
import { slotLimits } from '../../api/slot-status.ts'
import type { Candidate } from '../decide/snapshot.ts'
import { makePull, makeState } from '../testing/pulled.ts'
import { makeCandidate } from '../testing/slots.ts'
import { type PulledFacts, pulledSlotFacts } from './status.ts'

/** The operator has the state of the primary `p0`. */
const saved: PulledFacts = {
  pull: makePull(),
  stateOf: () => makeState({ generation: 3 }),
  problemOf: () => undefined,
  storeHealthy: undefined,
  monotonicNow: 1_000,
}

it('a set with backups on hundreds of nodes has a status that can be stored', () => {
  const primary = makeCandidate('p0', 'primary', { slot: 0 })
  const backups = Array.from({ length: 300 }, (_, index) =>
    makeCandidate(`h${index}`, 'hotbackup', { node: `n${index}` }),
  )
  const { usableOn, usableOnCount, protection, savedAt } = pulledSlotFacts(saved, 0, primary, [
    primary,
    ...backups,
  ])
  expect(usableOn).toHaveLength(slotLimits.usableOn)
  expect(usableOnCount).toBe(300)
  expect(protection).toBe('Warm')
  expect(savedAt).toBe('1970-01-01T00:00:00.000Z')
})

it('the protection by a pulled state is the best that a backup could do', () => {
  const primary = makeCandidate('p0', 'primary', { slot: 0 })
  const protection = (pods: readonly Candidate[], facts = saved) =>
    pulledSlotFacts(facts, 0, primary, [primary, ...pods]).protection
  const cold = makeCandidate('c0', 'coldbackup', { gate: 'waiting' })
  expect(protection([makeCandidate('h0', 'hotbackup'), cold])).toBe('Warm')
  expect(protection([makeCandidate('h0', 'hotbackup', { ready: false }), cold])).toBe('Cold')
  expect(protection([])).toBe('None')
  expect(protection([cold], { ...saved, stateOf: () => undefined })).toBe('None')
})
