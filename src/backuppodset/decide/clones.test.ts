import { describe, expect, it } from 'vitest'
import { cloneHolder } from '../../api/clone-of.ts'
import type { NumberedSlotLease } from '../../api/numbered-slot.ts'
import { unaskedOf } from '../../slot/decide/knowledge.ts'
import type {
  CloneSource,
  Copy,
  MemoryView,
  NodeView,
  SlotMemory,
  Word,
} from '../../slot/decide/memory-view.ts'
import { makeSlot } from '../../slot/testing/slots.ts'
import type { Snapshot } from '../snapshot.ts'
import { actions, ofType, plan } from '../testing/decided.ts'
import { coldCopy, makeMemorySnapshot, makePrimary, makeUnderstudy, parsedMemory } from '../testing/memory.ts'

const of = { name: 'other-0', incarnation: '00000001', epoch: 3, generation: 7, node: 'a' }
const onB = { ...of, node: 'b' }
const source: CloneSource = { pod: 'other-x', podUid: 'other-uid', restoreHash: 'fits', copies: [of, onB] }
const from = (...copies: CloneSource['copies']) => ({ ...source, copies })
const none: Word = { reason: 'NoCloneSource', message: 'none' }
const nodes = ['a', 'b']

interface World {
  readonly cloneSource?: CloneSource | Word
  readonly pods?: Snapshot['pods']
  readonly set?: Partial<Snapshot['set']>
  readonly memory?: Partial<MemoryView>
  readonly over?: Partial<Snapshot>
}

function at(
  slots: readonly SlotMemory[],
  { cloneSource, pods = [], set, memory, over }: World = {},
): Snapshot {
  const s = makeMemorySnapshot(
    { replicas: 2, hotBackups: 0, cloneFrom: 'other-x', ...set },
    pods,
    slots,
    { restoreHash: 'fits', ...over },
    nodes,
  )
  if (s.memory === undefined) throw new Error('a set without memory')
  return { ...s, memory: { ...s.memory, cloneSource: cloneSource ?? source, ...memory } }
}

/** The Leases with which the slots of a new set begin. */
const begun = (): readonly NumberedSlotLease[] => ofType(at([]), 'writeSlot').map(({ lease }) => lease)

const unasked = (lease: NumberedSlotLease) =>
  unaskedOf(lease, [], { isVacant: true, isDeath: false, isLong: true })

/** Slots whose copies have not been made. */
const waiting = (over: Partial<SlotMemory> = {}): SlotMemory[] =>
  begun().map(lease => makeSlot(lease, [], { unasked: unasked(lease), vacantSince: 0, ...over }))

const copied = (over: Partial<Copy> = {}): SlotMemory[] =>
  begun().map(lease => makeSlot(lease, [{ ...coldCopy(lease, 'a'), ...over }], { vacantSince: 0 }))

const first = ([slot]: readonly SlotMemory[]): SlotMemory => {
  if (slot === undefined) throw new Error('no slot')
  return slot
}

/** Slots whose node reports why it makes no copy. */
const refusing = (reason: string, since = 0) =>
  waiting({ uncopiedSince: since }).map(
    (slot): SlotMemory => ({
      ...slot,
      source: {
        ...{ namespace: 'default', name: slot.lease.name, incarnation: slot.lease.incarnation },
        ...{ role: 'source', generation: 0, reason, message: 'why' },
      },
    }),
  )

const nodeA = (over: Partial<NodeView>): ReadonlyMap<string, NodeView> =>
  new Map([
    ['a', { name: 'a', ready: true, problem: undefined, ...over }],
    ['b', { name: 'b', ready: true, problem: undefined }],
  ])

describe('MP-28: a new slot of a set with cloneFrom', () => {
  it('has a Lease before it has a pod: as if its primary had died on the node that copies the memory', () => {
    expect(actions(at([]))).toMatchObject(
      [0, 1].map(slot => ({
        type: 'writeSlot',
        version: undefined,
        retention: { type: 'clones' },
        lease: {
          ...{ slot, epoch: 1, node: 'a', kept: ['a'], holders: [], cloneOf: of, restoreHash: 'fits' },
          holder: { name: 'other-x', uid: cloneHolder('other-uid') },
          signers: [{ epoch: 1 }],
        },
      })),
    )
    const [one, two] = begun()
    expect(one?.incarnation).not.toBe(two?.incarnation)
    expect(one?.seal).not.toBe(two?.seal)
  })

  it('waits for its copy: an agent that reports nothing may not have read the Lease', () => {
    const status = { slotsKnown: true, slots: [], slotCount: 0 }
    for (const lease of begun()) {
      const answers = [{ node: 'a', status, report: undefined, fresh: true }]
      const vacancy = { isVacant: true, isDeath: false, isLong: true }
      expect(unaskedOf(lease, answers, vacancy)).toMatchObject([{ node: 'a' }])
      // Once a pod was called, a report that there is none counts as for any slot.
      const called = { ...lease, holder: { name: 'p', uid: 'uid-p' }, node: 'b' }
      expect(unaskedOf(called, answers, vacancy)).toEqual([])
    }
    expect(actions(at(waiting()))).toEqual([])
  })

  it('gets a pod once the node has the copy: near it, also in a set with numbered pods', () => {
    expect(ofType(at(copied()), 'create')).toHaveLength(2)
    for (const set of [{}, { isNumbered: true as const }])
      for (const { successorOf } of ofType(at(copied(), { set }), 'create')) {
        expect(successorOf).toMatchObject({ near: ['a'] })
        expect(successorOf).not.toHaveProperty('avoid')
      }
  })

  it('is served by a backup that waits already, and remembers its source until it serves', () => {
    const hot = makeUnderstudy('h0', { node: 'a' }, { restoreHash: 'fits' })
    const s = at([first(copied())], { pods: [hot], set: { replicas: 1, hotBackups: 1 } })
    const [promotion] = ofType(s, 'promote')
    expect(promotion).toMatchObject({
      pod: { name: 'h0' },
      lease: { epoch: 2, holder: { name: 'h0' }, cloneOf: of },
    })
    // Nothing was lost: it is in no history and in no metric of failovers.
    expect(promotion?.role.replaces).toBeUndefined()
  })

  it('has another number than a primary that gets its slot in the same pass', () => {
    const slotless = makePrimary('p0', 0, { slot: undefined, epoch: 0 })
    const s = at([], { pods: [slotless] })
    const given = ofType(s, 'convert').map(({ role }) => role?.slot)
    const cloned = ofType(s, 'writeSlot').flatMap(({ lease }) => (lease.cloneOf ? [lease.slot] : []))
    expect([...given, ...cloned].toSorted()).toEqual([0, 1])
  })

  it.each<[string, CloneSource | Word]>([
    ['is none', none],
    ['does not fit the template', { ...source, restoreHash: 'another' }],
  ])('waits while the memory %s: it never begins empty, and looks again soon', (_, cloneSource) => {
    expect(actions(at([], { cloneSource }))).toEqual([])
    expect(plan(at([], { cloneSource })).requeueAfterMs).toBeLessThanOrEqual(2_000)
    expect(plan(at([])).requeueAfterMs ?? 9_999).toBeGreaterThan(2_000)
  })

  it('waits while no memory may be kept in its set', () => {
    expect(ofType(at([], { memory: { refused: none } }), 'writeSlot')).toEqual([])
  })

  it('never gives its memory up: no app has begun with it', () => {
    const set = { replicas: 1, memory: { ...parsedMemory, giveUpAfterMs: 1 } }
    // Its source has saved again meanwhile.
    const cloneSource = from({ ...of, generation: 8 })
    expect(actions(at([first(waiting({ vacantSince: -1_000_000 }))], { cloneSource, set }))).toEqual([])
    const { cloneOf: _, ...lease } = first(waiting()).lease
    const lost = makeSlot(lease, [], { unasked: unasked({ ...lease, cloneOf: of }), vacantSince: -1_000_000 })
    expect(ofType(at([lost], { set }), 'create')).toHaveLength(1)
  })

  it('begins with the memory of its source again if its own is gone before it serves', () => {
    const { lease } = first(copied())
    const called = { ...lease, holder: { name: 'h9', uid: 'gone' }, epoch: 4, kept: ['b'] }
    const s = at([makeSlot(called, [], { vacantSince: 0 })], { set: { replicas: 1 } })
    expect(ofType(s, 'create')).toEqual([])
    const [write] = ofType(s, 'writeSlot')
    expect(write).toMatchObject({
      version: '1',
      lease: { slot: 0, epoch: 4, node: 'a', kept: ['a'], cloneOf: of, signers: [{ epoch: 4 }] },
    })
    expect(write?.lease.incarnation).not.toBe(lease.incarnation)
    expect(write?.lease.holder.uid).toBe(cloneHolder('other-uid'))
  })

  it('that has begun is a slot as any other', () => {
    const s = at([], { pods: [makePrimary('p0', 0)], set: { replicas: 1 } })
    expect(ofType(s, 'create')).toEqual([])
  })
})

describe('MP-28: copies at a time', () => {
  it('are two in a set: each takes room and bandwidth from others', () => {
    const set = { replicas: 5 }
    expect(ofType(at([], { set }), 'writeSlot')).toHaveLength(2)
    expect(ofType(at(waiting(), { set }), 'writeSlot')).toEqual([])
    expect(
      ofType(at(copied(), { set }), 'writeSlot').filter(({ version }) => version === undefined),
    ).toHaveLength(2)
  })
})

describe('MP-28: a slot whose copy does not come', () => {
  const moved = (s: Snapshot) => ofType(s, 'writeSlot').filter(({ version }) => version !== undefined)

  it('is copied elsewhere, as another incarnation built as the first one, if the memory is not there any more', () => {
    const slots = refusing('CloneSourceGone', 0)
    const later = { ...onB, generation: 9 }
    const writes = moved(at(slots, { cloneSource: { ...from(later), restoreHash: 'fits', podUid: 'moved' } }))
    expect(writes).toMatchObject(
      [0, 1].map(slot => ({
        version: '1',
        lease: {
          ...{ slot, node: 'b', kept: ['b'], cloneOf: later, restoreHash: 'fits' },
          holder: { uid: cloneHolder('moved') },
        },
      })),
    )
    const [before] = slots
    expect(writes[0]?.lease.incarnation).not.toBe(before?.lease.incarnation)
    expect(writes[0]?.lease.seal).not.toBe(before?.lease.seal)
    // With the same memory on the same node it would fail again; another slot of that node may have it.
    expect(moved(at(slots, { cloneSource: from(of) }))).toEqual([])
    expect(moved(at(slots, { cloneSource: from({ ...of, incarnation: '00000002' }) }))).toHaveLength(2)
  })

  it.each<[string, Partial<NodeView>, number]>([
    ['is silent', { ready: false, silent: true, away: true }, 2],
    ['cannot keep memory any more', { ready: false }, 2],
    ['has an agent that is being replaced', { ready: false, away: true }, 0],
    ['is well', {}, 0],
  ])('is copied elsewhere, or not, if its node %s', (_, over, count) => {
    const world = { cloneSource: from(onB), memory: { nodes: nodeA(over) } }
    expect(moved(at(waiting(), world))).toHaveLength(count)
    // The copy can be fetched as long as one node that has it answers.
    expect(moved(at(copied(), world))).toEqual([])
  })

  it('is copied again if all nodes with the copy are silent', () => {
    const world = { cloneSource: from(onB), memory: { nodes: nodeA({ ready: false, silent: true }) } }
    expect(moved(at(copied({ silent: true, stale: true }), world))).toHaveLength(2)
  })

  it('is copied by another node if this one has refused for long, and others begin there, too', () => {
    const over = { monotonicNow: 40_000 }
    expect(moved(at(refusing('StoreFull', 20_000), { over }))).toEqual([])
    expect(moved(at(refusing('StoreFull'), { over }))).toMatchObject([
      { lease: { node: 'b' } },
      { lease: { node: 'b' } },
    ])
    expect(moved(at(refusing('StoreFull'), { over, cloneSource: from(of) }))).toEqual([])
    const one = refusing('StoreFull').slice(0, 1)
    const fresh = ofType(at(one, { over }), 'writeSlot').filter(({ version }) => version === undefined)
    expect(fresh).toMatchObject([{ lease: { slot: 1, node: 'b' } }])
  })

  it('is left alone while the set is suspended, or once a pod was called to it', () => {
    const world = { cloneSource: from(onB), memory: { nodes: nodeA({ ready: false, silent: true }) } }
    const called = copied({ silent: true }).map(slot => ({
      ...slot,
      lease: { ...slot.lease, holder: { name: 'h9', uid: 'gone' } },
    }))
    expect(moved(at(called, world)).filter(({ lease }) => lease.holder.uid !== 'gone')).toEqual([])
    const kept = copied({ silent: true }).map(slot => ({
      ...slot,
      lease: { ...slot.lease, retainedSince: '2030-01-01T00:00:00Z', suspended: true as const },
    }))
    expect(moved(at(kept, { ...world, set: { suspended: true } }))).toEqual([])
  })
})

describe('MP-28: a slot that waits for memory which is not wanted any more', () => {
  it.each<[string, Partial<Snapshot['set']>]>([
    ['names another pod', { cloneFrom: 'another' }],
    ['names none', { cloneFrom: undefined }],
  ])('is forgotten first if the set %s, and then begins as the spec says', (_, set) => {
    for (const slots of [waiting(), copied()]) {
      const s = at(slots, { set })
      expect(actions(s)).toMatchObject([
        { type: 'deleteSlot', slot: 0, lease: { uid: 'lease-0', resourceVersion: '1' } },
        { type: 'deleteSlot', slot: 1 },
      ])
    }
  })

  it('is forgotten if the set has no place for it: the source has its memory', () => {
    for (const slots of [waiting(), copied()])
      expect(actions(at(slots, { set: { replicas: 0 } })).map(({ type }) => type)).toEqual([
        'deleteSlot',
        'deleteSlot',
      ])
  })

  it('of a suspended set waits on with its copy, and is forgotten without one', () => {
    const set = { suspended: true }
    expect(actions(at(waiting(), { set })).map(({ type }) => type)).toEqual(['deleteSlot', 'deleteSlot'])
    expect(ofType(at(copied(), { set }), 'writeSlot')).toMatchObject([
      { lease: { suspended: true, cloneOf: of } },
      { lease: { suspended: true, cloneOf: of } },
    ])
  })
})
