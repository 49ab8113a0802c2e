import { expect, it } from 'vitest'
import { cloneHolder } from '../../api/clone-of.ts'
import type { NumberedSlotLease } from '../../api/numbered-slot.ts'
import { makeHolder, makeLease, makeSlot } from '../testing/slots.ts'
import { checkpointReadiness } from './readiness.ts'

const cloneOf = { name: 'other-0', incarnation: '00000001', epoch: 3, generation: 7, node: 'a' }

const readiness = (over: Partial<NumberedSlotLease>) => {
  const lease = makeLease(makeHolder('other-x', 0), over)
  const slot = makeSlot(lease, [], { vacantSince: 0, unasked: [{ node: 'a', why: 'copies' }] })
  const nodes = new Map([['a', { name: 'a', ready: true, problem: undefined }]])
  const memory = { slots: new Map([[0, slot]]), copies: 1, giveUpAfterMs: 5_000, nodes }
  return checkpointReadiness(memory, [], [], { monotonicNow: 0, intervalMs: 1_000 })
}

it('MP-28: a slot that begins with a copy is not said to start empty', () => {
  expect(readiness({ cloneOf, holder: { name: 'other-x', uid: cloneHolder('u') } })).toMatchObject({
    reason: 'Cloning',
    message: expect.stringContaining('its copy of the memory of other-x'),
  })
  expect(readiness({ cloneOf })).toMatchObject({
    reason: 'MemoryWaits',
    message: expect.stringContaining('it starts with the memory of its source again after 5 s'),
  })
  expect(readiness({})).toMatchObject({ message: expect.stringContaining('it starts empty after 5 s') })
})
