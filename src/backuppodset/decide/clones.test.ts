// Long because it is a list of situations for one rule, with the fixtures that they share.

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
const source: CloneSource = {
  ...{ slot: of, pod: 'other-x', podUid: 'other-uid', restoreHash: 'fits', copies: [of, onB] },
}
const from = (...copies: CloneSource['copies']) => ({ ...source, copies })
const none: Word = { reason: 'NoCloneSource', message: 'none' }
const nodes = ['a', 'b']

interface World {
  readonly cloneSource?: MemoryView['cloneSource']
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

  it.each<[string, Partial<CloneSource['copies'][number]>, string | undefined]>([
    ['a failover once its primary has served', { served: true }, 'h9'],
    ['no failover before', {}, undefined],
  ])('gives its slot to another pod: %s', (_, more, lost) => {
    const { lease } = first(copied())
    const called = { ...lease, holder: { name: 'h9', uid: 'gone' }, cloneOf: { ...of, ...more } }
    const hot = makeUnderstudy('h0', { node: 'a' }, { restoreHash: 'fits' })
    const slot = makeSlot(called, [coldCopy(called, 'a')], { vacantSince: 0 })
    const s = at([slot], { pods: [hot], set: { replicas: 1, hotBackups: 1 } })
    expect(ofType(s, 'promote').map(({ role }) => role.replaces?.name)).toEqual([lost])
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
    const againMs = (over: Partial<Snapshot>, set = {}) =>
      plan(at([], { cloneSource, over, set, memory: { cloningSince: 0 } })).requeueAfterMs
    expect(againMs({})).toBe(2_000)
    expect(againMs({ monotonicNow: 20_000 })).toBe(10_000)
    expect(againMs({ monotonicNow: 1_000_000 })).toBe(30_000)
    for (const set of [{ paused: true }, { suspended: true }]) expect(againMs({}, set)).toBeUndefined()
    expect(plan(at([])).requeueAfterMs).toBeUndefined()
  })

  it('waits while no memory may be kept in its set', () => {
    expect(ofType(at([], { memory: { refused: none } }), 'writeSlot')).toEqual([])
  })

  it('is not given up while it waits for its copy', () => {
    const set = { replicas: 1, memory: { ...parsedMemory, giveUpAfterMs: 1 } }
    // Its source has saved again meanwhile.
    const cloneSource = from({ ...of, generation: 8 })
    expect(actions(at([first(waiting({ vacantSince: -1_000_000 }))], { cloneSource, set }))).toEqual([])
  })

  it('begins with the memory of its source again if its own is gone before it serves', () => {
    const { lease } = first(copied())
    const called = { ...lease, holder: { name: 'h9', uid: 'gone' }, epoch: 4, kept: ['b'] }
    const s = at([makeSlot(called, [], { vacantSince: 0 })], { set: { replicas: 1 } })
    expect(ofType(s, 'create')).toEqual([])
    const [write] = ofType(s, 'writeSlot')
    expect(write).toMatchObject({
      version: '1',
      lease: { slot: 0, epoch: 5, node: 'a', kept: ['a'], cloneOf: of, signers: [{ epoch: 5 }] },
      // The cache may be stale: the API server has to confirm that no node has the memory.
      ends: called,
    })
    expect(write?.lease.incarnation).not.toBe(lease.incarnation)
    expect(write?.lease.holder.uid).toBe(cloneHolder('other-uid'))
    // A source that cannot be read any more changes nothing: no pod has served.
    const { cloneOf: _, ...unread } = lease
    const again = at([makeSlot(unread, [], { vacantSince: 0 })], { set: { replicas: 1 } })
    expect(ofType(again, 'create')).toEqual([])
    expect(ofType(again, 'writeSlot')).toMatchObject([{ lease: { epoch: 2, cloneOf: of } }])
  })

  it('does not get back to its dead primary, whose pod is still there', () => {
    const pod = makePrimary('p0', 0, { epoch: 2, ready: false }, { died: true, understudy: true })
    const { lease } = first(copied())
    const called = { ...lease, holder: { name: pod.name, uid: pod.uid }, epoch: 2, kept: ['b'] }
    const world = { pods: [pod], set: { replicas: 1 } }
    const [write] = ofType(at([makeSlot(called, [], { vacantSince: 0 })], world), 'writeSlot')
    if (write === undefined) throw new Error('no write')
    const over = { unasked: unasked(write.lease), vacantSince: 0 }
    for (const epoch of [pod.epoch + 1, pod.epoch]) {
      const next = makeSlot({ ...write.lease, epoch }, [], over)
      expect(actions(at([next], world))).toEqual([])
    }
  })

  it.each<[string, number | undefined, Partial<CloneSource['copies'][number]>, number]>([
    ['began with nothing, and no node that may have its copy answers', 9_000, {}, 1],
    ['does so for a short time only', 20_000, {}, 0],
    ['has a node that answers', undefined, {}, 0],
    ['has served', 9_000, { served: true }, 0],
  ])('begins with its source again, or not, if a pod was called to it and it %s', (_, since, more, count) => {
    const { lease } = first(copied())
    const cloneOf = { ...of, ...more }
    const called = { ...lease, holder: { name: 'h9', uid: 'gone' }, epoch: 4, kept: ['b'], cloneOf }
    const silent = { ...coldCopy(called, 'b'), silent: true, stale: true }
    const slot = makeSlot(called, [silent], { vacantSince: 0, uncopiedSince: since })
    const s = at([slot], { set: { replicas: 1 }, over: { monotonicNow: 40_000 } })
    const writes = ofType(s, 'writeSlot').filter(write => write.lease.cloneOf?.served !== true)
    expect(writes.filter(write => write.lease.incarnation !== lease.incarnation)).toHaveLength(count)
    // A node may still have it.
    for (const write of writes) expect(write).not.toHaveProperty('ends')
  })

  it('is given up like any memory once it has served, and begins with its source again', () => {
    const { lease } = first(copied())
    const called = {
      ...lease,
      holder: { name: 'h9', uid: 'gone' },
      cloneOf: { ...of, served: true as const },
    }
    const silent = { ...coldCopy(called, 'a'), silent: true, stale: true }
    const set = { replicas: 1, memory: { ...parsedMemory, giveUpAfterMs: 1 } }
    const s = at([makeSlot(called, [silent], { vacantSince: -1_000_000 })], { set })
    expect(ofType(s, 'writeSlot')).toMatchObject([{ lease: { cloneOf: of, epoch: 2 } }])
    // Without a source it begins empty, as new slots of the set do.
    const without = at([makeSlot(called, [], { vacantSince: 0 })], {
      set: { replicas: 1, cloneFrom: undefined },
    })
    expect(ofType(without, 'writeSlot')).toEqual([])
    expect(ofType(without, 'create')).toMatchObject([
      { kind: 'primary', role: { slot: 0, startsEmpty: 'Gone' } },
    ])
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
    // A copy takes its room until a pod has been called.
    expect(ofType(at(copied(), { set }), 'writeSlot')).toEqual([])
    expect(ofType(at(copied().slice(0, 1), { set }), 'writeSlot')).toHaveLength(1)
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
          ...{ slot, epoch: 2, node: 'b', kept: ['b'], cloneOf: later, restoreHash: 'fits' },
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

  it('is copied elsewhere if the node has a copy that it cannot use, and is lost or refuses for long', () => {
    const useless = (over: Partial<SlotMemory>) =>
      copied().map(slot => ({
        ...{ ...slot, ...over },
        copies: slot.copies.map(({ report: { usable: _, ...report }, ...copy }) => ({ ...copy, report })),
      }))
    const world = { cloneSource: from(onB), over: { monotonicNow: 40_000 } }
    expect(moved(at(useless({}), world))).toEqual([])
    expect(moved(at(useless({ uncopiedSince: 0 }), world))).toHaveLength(2)
    const lost = { ...world, memory: { nodes: nodeA({ ready: false }) } }
    expect(moved(at(useless({}), lost))).toHaveLength(2)
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
      const s = at(slots, { set, cloneSource: { ...none, slot: { ...of, incarnation: '00000002' } } })
      expect(actions(s)).toMatchObject([
        { type: 'deleteSlot', slot: 0, lease: { uid: 'lease-0', resourceVersion: '1' } },
        { type: 'deleteSlot', slot: 1 },
      ])
    }
  })

  it('waits on if the set names another pod to which the same slot has moved', () => {
    const set = { cloneFrom: 'another' }
    const cloneSource = { ...source, pod: 'another', podUid: 'new' }
    expect(actions(at(waiting(), { set, cloneSource }))).toEqual([])
    expect(ofType(at(copied(), { set, cloneSource }), 'create')).toHaveLength(2)
    // The same, if nothing reports its memory just now.
    expect(actions(at(waiting(), { set, cloneSource: { ...none, slot: of } }))).toEqual([])
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
