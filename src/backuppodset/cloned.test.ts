import { describe, expect, it } from 'vitest'
import { cloneHolder } from '../api/clone-of.ts'
import type { NumberedSlotLease } from '../api/numbered-slot.ts'
import type { CloneSource, MemoryView, SlotMemory, Word } from '../slot/decide/memory-view.ts'
import { makeLease, makeSlot } from '../slot/testing/slots.ts'
import { clonedOf } from './cloned.ts'
import { conditionsOf } from './conditions.ts'
import { coldCopy, makePrimary } from './testing/memory.ts'
import { makeSet } from './testing/snapshots.ts'

const of = { name: 'other-0', incarnation: '00000001', epoch: 3, generation: 7, node: 'a' }
const source: CloneSource = { slot: of, pod: 'other-x', podUid: 'u', restoreHash: 'fits', copies: [of] }
const gone: Word = { reason: 'NoCloneSource', message: 'pod other-x is gone' }

const coming = (slot: number, over: Partial<NumberedSlotLease> = {}) =>
  makeLease(makePrimary('other-x', slot, { node: 'a' }), {
    ...{ holder: { name: 'other-x', uid: cloneHolder('u') }, kept: ['a'], cloneOf: of, ...over },
  })
const waits = (slot: number, over: Partial<SlotMemory> = {}) =>
  makeSlot(coming(slot), [], { unasked: [{ node: 'a', why: 'copies' }], ...over })
const serves = (slot: number, over: Partial<NumberedSlotLease> = {}) =>
  makeSlot(makeLease(makePrimary(`p${slot}`, slot), over), [])
const stuck = { ready: false, silent: true }

interface World {
  readonly set?: Parameters<typeof makeSet>[0]
  readonly cloneSource?: CloneSource | Word
  readonly a?: object
}

const now = Date.parse('2030-01-01T01:00:00Z')
const setOf = (world: World) => makeSet({ replicas: 2, cloneFrom: 'other-x', ...world.set })
function factsOf(slots: readonly SlotMemory[], { cloneSource = source, a }: World) {
  const memory: MemoryView = {
    slots: new Map(slots.map(slot => [slot.lease.slot, slot])),
    ...{
      copies: 1,
      cloneSource,
      nodes: new Map([['a', { name: 'a', ready: true, problem: undefined, ...a }]]),
    },
  }
  return {
    ...{ pods: [], templateHash: '', restoreHash: 'fits', failure: undefined, now, memory, monotonicNow: 0 },
    ...{ lastTransition: undefined, lastFailover: undefined },
  }
}
const word = (slots: readonly SlotMemory[], world: World = {}) =>
  clonedOf(setOf(world), factsOf(slots, world))

describe('MP-28: the condition Cloned', () => {
  it('is true once each slot has served: also those that are suspended now', () => {
    expect(word([serves(0), serves(1)])).toMatchObject([{ status: 'True', reason: 'Cloned' }])
    // A set with one node protects nothing; its user has to know that.
    const held = makeSlot(serves(0).lease, [coldCopy(serves(0).lease, 'z')])
    expect(word([held, serves(1)])).toMatchObject([
      { status: 'True', message: 'all slots have begun; no other node has the memory of slot 1' },
    ])
    expect(word([serves(0), serves(1, { cloneOf: { ...of, served: true } })])).toMatchObject([
      { status: 'False', message: expect.stringContaining('p1 has begun, and no other node has its memory') },
    ])
    const asleep = serves(1, { retainedSince: '2030-01-01T00:00:00Z', suspended: true })
    expect(word([serves(0), asleep], { set: { suspended: true } })).toMatchObject([{ status: 'True' }])
    expect(word([serves(0), serves(1, { retainedSince: '2030-01-01T00:00:00Z' })])).toMatchObject([
      { status: 'False' },
    ])
  })

  it('is absent without cloneFrom, and where nothing is known of its memory', () => {
    expect(word([], { set: { cloneFrom: undefined } })).toEqual([])
    const { memory: _, ...unknown } = factsOf([], {})
    expect(clonedOf(setOf({}), unknown)).toEqual([])
  })

  it.each<[string, readonly SlotMemory[], World, string, RegExp]>([
    [
      'a copy is made',
      [waits(0)],
      {},
      'Cloning',
      /0 of 2 slots .*slot 0: node a copies the memory of other-x$/,
    ],
    [
      'the node says why it makes none',
      [
        waits(0, {
          source: { ...of, namespace: 'default', role: 'source', generation: 0, message: 'no room' },
        }),
      ],
      {},
      'Cloning',
      /and reports: no room/,
    ],
    [
      'a pod for it is made',
      [serves(1), makeSlot(coming(0), [coldCopy(coming(0), 'a')])],
      {},
      'Cloning',
      /1 of 2 slots .*node a has the memory of other-x, and a pod/,
    ],
    [
      'its pod was called',
      [makeSlot(coming(0, { holder: { name: 'h0', uid: 'h0' } }), [coldCopy(coming(0), 'a')])],
      {},
      'Cloning',
      /slot 0: h0 has been called/,
    ],
    // A copy that is under way needs its source no more.
    [
      'a copy is made, and its source is gone',
      [waits(0), waits(1)],
      { cloneSource: gone },
      'Cloning',
      /copies/,
    ],
    [
      'a slot is stuck without a source',
      [waits(0)],
      { cloneSource: gone, a: stuck },
      'NoCloneSource',
      /is gone/,
    ],
    [
      'there is no source',
      [serves(0)],
      { cloneSource: gone },
      'NoCloneSource',
      /^1 of 2 slots .*pod other-x is gone/,
    ],
    [
      'a called pod has lost the memory',
      [makeSlot(coming(0, { holder: { name: 'h0', uid: 'h0' } }), [], { vacantSince: 0 })],
      { cloneSource: gone },
      'NoCloneSource',
      /is gone/,
    ],
    [
      'its memory does not fit',
      [],
      { cloneSource: { ...source, restoreHash: 'another' } },
      'CloneUnfit',
      /pod other-x cannot be restored/,
    ],
    ['nothing has begun yet', [], {}, 'Cloning', /0 of 2/],
    [
      'the set is suspended',
      [],
      { set: { suspended: true }, cloneSource: gone },
      'Suspended',
      /when the set resumes/,
    ],
    ['the set is paused', [], { set: { paused: true } }, 'Paused', /while spec.paused/],
  ])('says if %s', (_, slots, world, reason, message) => {
    expect(word(slots, world)).toMatchObject([
      { status: 'False', reason, message: expect.stringMatching(message) },
    ])
  })

  it('that stays false for long without a beginning makes the set late', () => {
    const world = { cloneSource: gone }
    const progressing = (cloningSince: number | undefined) => {
      const facts = { ...factsOf([], world), monotonicNow: 1_000_000 }
      const { memory } = facts
      return conditionsOf(setOf(world), [], {}, { ...facts, memory: { ...memory, cloningSince } }).find(
        ({ type }) => type === 'Progressing',
      )
    }
    for (const since of [undefined, 400_001]) expect(progressing(since)).toMatchObject({ status: 'True' })
    expect(progressing(400_000)).toMatchObject({
      ...{ status: 'False', reason: 'ProgressDeadlineExceeded' },
      message: expect.stringContaining('pod other-x is gone'),
    })
  })
})
