import { expect, it } from 'vitest'
import { makeSlotReport } from '../testing/objects.ts'
import { makeCopy, makeHolder, makeLease, makeSlot } from '../testing/slots.ts'
import { keptNow, unaskedOf } from './knowledge.ts'
import type { Copy, SlotMemory } from './memory-view.ts'

const lease = makeLease(makeHolder('p', 0, { node: 'n1' }), { holders: ['n2'], kept: ['n1'] })
const nothing = { node: 'n1', status: { slotsKnown: true, slots: [] }, report: undefined, fresh: true }

it('D7.holder-asked: a holder that never reported a copy is waited for, and not for ever', () => {
  const vacancy = { isVacant: true, isDeath: false, isLong: false }
  expect(unaskedOf(lease, [nothing], vacancy)).toMatchObject([{ node: 'n2', isGuess: true }])
  expect(unaskedOf(lease, [nothing], { ...vacancy, isLong: true })).toEqual([])
  // A node that the Lease names is waited for however long it takes.
  const named = { ...lease, kept: ['n2'] }
  const [unasked] = unaskedOf(named, [nothing], { ...vacancy, isLong: true })
  expect(unasked).toMatchObject({ node: 'n2' })
  expect(unasked).not.toHaveProperty('isGuess')
})

it('D7.holder-asked: meanwhile the Lease does not name it, and does not forget that there was memory', () => {
  const guess = { node: 'n2', why: 'silent', isGuess: true }
  const keptOf = (unasked: readonly (typeof guess)[]) =>
    keptNow(makeSlot(lease, [], { unasked }), lease.holders, 'n1')
  expect(keptOf([guess])).toEqual(['n1'])
  expect(keptOf([])).toEqual([])
})

it('D7.holder-asked: a copy of its epoch elsewhere proves that the last primary has saved it, whether its node could say so or not', () => {
  const vacancy = { isVacant: true, isDeath: false, isLong: false }
  const first = { ...lease, kept: [] }
  const copyOf = (epoch: number) => ({
    ...{ node: 'n2', status: undefined, fresh: true },
    report: makeSlotReport({ epoch }),
  })
  const nodes = (...said: Parameters<typeof unaskedOf>[1]) =>
    unaskedOf(first, said, vacancy).map(({ node, isGuess }) => [node, isGuess])
  expect(nodes()).toEqual([])
  expect(nodes(copyOf(first.epoch))).toEqual([['n1', undefined]])
  expect(nodes(copyOf(first.epoch), nothing)).toEqual([])
  // The primary had that from another one.
  expect(nodes(copyOf(first.epoch - 1))).toEqual([])
})

it('D7.holder-asked: the Lease names a former holder that is silent until a node that is heard has memory', () => {
  const former = {
    ...makeCopy(lease, makeHolder('h', 0, { node: 'n3' }), undefined),
    silent: true,
    timely: false,
  }
  const holder = makeCopy(lease, makeHolder('h', 0, { node: 'n2' }), 'Frozen')
  const keptOf = (copies: readonly Copy[], over: Partial<SlotMemory> = {}) =>
    keptNow(makeSlot(lease, copies, { sourceKeeps: true, ...over }), lease.holders, 'n1')
  expect(keptOf([former])).toEqual(['n3', 'n1'])
  // The report of the primary's node, too, may be from before a loss of power.
  expect(keptOf([former], { source: makeSlotReport({ role: 'source' }) })).toEqual(['n3', 'n1'])
  expect(keptOf([former, { ...holder, timely: false }])).toEqual(['n2', 'n3', 'n1'])
  expect(keptOf([former, holder])).toEqual(['n2', 'n1'])
  expect(keptOf([former], { source: makeSlotReport({ role: 'source' }), sourceSeenAt: 1 })).toEqual(['n1'])
  expect(keptOf([{ ...former, silent: false }, holder])).toEqual(['n2', 'n3', 'n1'])
})

it('D7.holder-asked: the Lease names a node that has not been heard since it saved, until a node that is heard has memory', () => {
  const unasked = [{ node: 'n3', why: 'its agent is silent' }]
  const holder = makeCopy(lease, makeHolder('h', 0, { node: 'n2' }), 'Frozen')
  const keptOf = (copies: readonly Copy[]) =>
    keptNow(makeSlot(lease, copies, { sourceKeeps: true, unasked }), lease.holders, 'n1')
  expect(keptOf([])).toEqual(['n3', 'n1'])
  expect(keptOf([{ ...holder, timely: false }])).toEqual(['n2', 'n3', 'n1'])
  expect(keptOf([holder])).toEqual(['n2', 'n1'])
})

it('D10.bounds: a slot that a full report does not name is empty there, unless the report says that there are more', () => {
  const slots = Array.from({ length: 800 }, (_, slot) => makeSlotReport({ name: `bps-${slot}` }))
  const vacancy = { isVacant: true, isDeath: false, isLong: true }
  const unasked = (slotCount: number) =>
    unaskedOf(lease, [{ ...nothing, status: { slotsKnown: true, slots, slotCount } }], vacancy)
  expect(unasked(800)).toEqual([])
  expect(unasked(801)).toMatchObject([{ node: 'n1' }])
})
