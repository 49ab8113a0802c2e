// Long because it is a list of situations for one pure function, with the findings that they stem from.
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { seededRandom } from '../../kube/random.ts'
import type { Copy, SlotMemory } from '../memory/view.ts'
import type { Action } from '../plan.ts'
import type { PodView, Snapshot } from '../snapshot.ts'
import {
  coldCopy,
  makeMemorySnapshot,
  makePrimary,
  makeUnderstudy,
  parsedMemory,
  staged,
} from '../testing/memory.ts'
import { played } from '../testing/played.ts'
import { makeCopy, makeLease, makeSlot } from '../testing/slots.ts'
import { actionsOf, makePod } from '../testing/snapshots.ts'
import { decide } from './decide.ts'

const random = seededRandom(1)
const plan = (s: Snapshot) => decide(s, random)
const actions = (s: Snapshot) => actionsOf(plan(s))
const ofType = <T extends Action['type']>(s: Snapshot, type: T) =>
  actions(s).filter((action): action is Extract<Action, { type: T }> => action.type === type)

const dead = { ready: false }
const died = { died: true }

describe('a primary that died', () => {
  const p0 = makePrimary('p0', 0, dead, died)
  const p1 = makePrimary('p1', 1)
  const h0 = makeUnderstudy('h0')
  const h1 = makeUnderstudy('h1')
  const lease0 = makeLease(p0, {
    heir: { name: 'h0', uid: h0.uid, ip: '10.0.0.1' },
    holders: ['n-h0', 'n-h1'],
  })
  const lease1 = makeLease(p1, {
    heir: { name: 'h1', uid: h1.uid, ip: '10.0.0.1' },
    holders: ['n-h1', 'n-h0'],
  })
  const wish = { replicas: 2, hotBackups: 2 }

  it('is followed by the pod in which its memory lies frozen, by a swap of its Lease', () => {
    const s = makeMemorySnapshot(
      wish,
      [p0, p1, h0, h1],
      [
        makeSlot(lease0, [makeCopy(lease0, h0, 'Staged'), makeCopy(lease0, h1, 'Frozen')], {
          resourceVersion: '7',
        }),
        makeSlot(lease1, [makeCopy(lease1, h0, 'Staged')]),
      ],
    )
    expect(ofType(s, 'promote')).toMatchObject([
      {
        pod: { name: 'h1' },
        role: { slot: 0, epoch: 2, replaces: { name: 'p0', reason: 'Died' } },
        lease: {
          incarnation: lease0.incarnation,
          epoch: 2,
          holder: { uid: h1.uid },
          node: 'n-h1',
          heir: undefined,
          holders: ['n-h0'],
        },
        version: '7',
        origin: { how: 'Frozen', generation: 3, takenAt: 300 },
      },
    ])
    // A promotion writes the Lease of its slot; no other action writes it.
    expect(ofType(s, 'writeSlot').map(({ lease }) => lease.slot)).toEqual([1])
  })

  it('or by one whose node has newer memory, where the frozen one is more than a generation behind', () => {
    const winner = (frozenAt: number, over = {}) => {
      const copies = [
        makeCopy(lease0, h0, 'Frozen', { epoch: 1, generation: frozenAt, takenAt: '2099-01-01T00:00:00Z' }),
        makeCopy(lease0, h1, 'Staged', {
          epoch: 1,
          generation: 60,
          takenAt: '2030-01-01T00:00:00Z',
          ...over,
        }),
      ]
      return ofType(makeMemorySnapshot(wish, [p0, h0, h1], [makeSlot(lease0, copies)]), 'promote')[0]?.pod
        .name
    }
    // The clocks of their nodes do not matter.
    expect(winner(60)).toBe('h0')
    expect(winner(59)).toBe('h0')
    expect(winner(58)).toBe('h1')
    // The epoch counts more than the generation.
    expect(winner(70, { epoch: 2 })).toBe('h1')
  })

  it('D7.patience: has nothing to bring back if its memory lies frozen there and is as new as any', () => {
    const work = (frozen: boolean, hereAt: number, elsewhereAt: number | undefined) => {
      const copies = [
        makeCopy(lease0, h0, frozen ? 'Frozen' : 'Staged', { epoch: 1, generation: hereAt }),
        ...(elsewhereAt === undefined
          ? []
          : [makeCopy(lease0, h1, 'Staged', { epoch: 1, generation: elsewhereAt })]),
      ]
      const { origin } =
        ofType(makeMemorySnapshot(wish, [p0, h0], [makeSlot(lease0, copies)]), 'promote')[0] ?? {}
      return [origin?.moves, origin?.restores]
    }
    expect(work(true, 9, undefined)).toEqual([false, false])
    expect(work(true, 9, 10)).toEqual([false, false])
    expect(work(false, 9, 10)).toEqual([false, true])
    // More than the one generation that may be in transit is missing: the newer one is fetched first, and the local
    // copy is of no use.
    expect(work(true, 9, 11)).toEqual([true, true])
  })

  it('signs with the key of its node, and what those before it have signed is still known', () => {
    const [key, before] = ['a'.repeat(64), 'b'.repeat(64)]
    const swap = (signers?: NonNullable<typeof lease0.signers>) => {
      const lease = { ...lease0, ...(signers && { signers }) }
      const s = makeMemorySnapshot(wish, [p0, h0], [makeSlot(lease, [makeCopy(lease, h0, 'Frozen')])])
      const node = { name: 'n-h0', ready: true, problem: undefined, signer: key }
      if (s.memory === undefined) throw new Error('no memory')
      const memory = { ...s.memory, nodes: new Map([['n-h0', node]]) }
      return ofType({ ...s, memory }, 'promote')[0]?.lease.signers
    }
    expect(swap([{ epoch: 1, fingerprint: before }])).toEqual([
      { epoch: 2, fingerprint: key },
      { epoch: 1, fingerprint: before },
    ])
    // An operator of an earlier version wrote the Lease: memory saved until now need not be signed.
    expect(swap()).toEqual([
      { epoch: 2, fingerprint: key },
      { epoch: 1, fingerprint: undefined },
    ])
  })

  const other = makeSlot(lease1, [makeCopy(lease1, h0, 'Frozen')])
  const without = (slot: SlotMemory, over: Partial<Snapshot> = {}) =>
    makeMemorySnapshot(wish, [p0, p1, h0, h1], [slot, other], over)

  it('and by nobody, with nothing, where all that kept its memory say that they have none', () => {
    const s = without(makeSlot(lease0, []))
    expect(ofType(s, 'promote')).toEqual([])
    expect(ofType(s, 'create')).toMatchObject([
      { kind: 'primary', role: { slot: 0, epoch: 2, startsEmpty: 'Gone', replaces: { reason: 'Died' } } },
    ])
  })

  it.each([
    [
      'is kept where it cannot be brought back now',
      makeSlot(lease0, [makeCopy(lease0, h0, undefined, { reason: 'NodeNotReady' })]),
    ],
    [
      'may be kept where the agent has said nothing yet',
      makeSlot({ ...lease0, kept: ['n-h0'] }, [], { unasked: [{ node: 'n-h0', why: 'silent' }] }),
    ],
  ])('D7.kept: waits, and begins no other life, while its memory %s', (_, slot) => {
    const s = without(slot)
    expect(actions(s).filter(({ type }) => type === 'promote' || type === 'create')).toEqual([])
    expect(ofType(s, 'writeSlot').filter(({ lease }) => lease.slot === 0)).toEqual([])
    expect(plan(without({ ...slot, vacantSince: 0 })).requeueAfterMs).toBe(5_000)
  })

  it('D7.give-up: memory that comes back nowhere is given up when the set says so, and no sooner', () => {
    const slot = makeSlot(lease0, [makeCopy(lease0, h0, undefined)], { vacantSince: 0 })
    const memory = { ...parsedMemory, giveUpAfterMs: 60_000 }
    const at = (monotonicNow: number) =>
      makeMemorySnapshot({ ...wish, memory }, [p0, p1, h0, h1], [slot, other], { monotonicNow })
    expect(ofType(at(59_000), 'create')).toEqual([])
    expect(plan(at(59_000)).requeueAfterMs).toBe(1_000)
    expect(ofType(at(60_000), 'create')).toMatchObject([
      { kind: 'primary', role: { startsEmpty: 'GivenUp' } },
    ])
    // Memory that can be restored at that very moment is restored.
    const back = makeSlot(lease0, [makeCopy(lease0, h0, 'Staged')], { vacantSince: 0 })
    const s = makeMemorySnapshot({ ...wish, memory }, [p0, p1, h0, h1], [back, other], {
      monotonicNow: 60_000,
    })
    expect(ofType(s, 'promote')).toMatchObject([{ pod: { name: 'h0' } }])
  })

  it('word that is old counts less than any other, but it counts', () => {
    const old = { ...makeCopy(lease0, h0, 'Frozen'), stale: true }
    const both = [makeSlot(lease0, [old, makeCopy(lease0, h1, 'Staged')]), makeSlot(lease1, [])]
    expect(ofType(makeMemorySnapshot(wish, [p0, p1, h0, h1], both), 'promote')[0]?.pod.name).toBe('h1')
    const only = [makeSlot(lease0, [old]), makeSlot(lease1, [])]
    expect(ofType(makeMemorySnapshot(wish, [p0, p1, h0, h1], only), 'promote')[0]?.pod.name).toBe('h0')
  })

  it("memory of another life of the slot is nobody's", () => {
    // Reports of another life do not count for this slot: `observeMemory` gives it no copies.
    const s = makeMemorySnapshot(wish, [p0, p1, h0, h1], [makeSlot(lease0, []), makeSlot(lease1, [])])
    expect(ofType(s, 'promote')).toEqual([])
  })

  it('two at once get different pods, each its own memory', () => {
    const both = [p0, makePrimary('p1', 1, dead, died)]
    const s = makeMemorySnapshot(
      wish,
      [...both, h0, h1],
      [
        makeSlot(lease0, [makeCopy(lease0, h0, 'Staged'), makeCopy(lease0, h1, 'Staged')]),
        makeSlot(lease1, [makeCopy(lease1, h0, 'Frozen')]),
      ],
    )
    const taken = ofType(s, 'promote').map(({ pod, role }) => [role.slot, pod.name])
    expect(taken.sort()).toEqual([
      [0, 'h1'],
      [1, 'h0'],
    ])
  })
})

describe('a slot without a hot backup', () => {
  const p0 = makePrimary('p0', 0, dead, died)
  const lease = makeLease(p0, { holders: ['n-c0', 'n-x'] })
  const cold = (name: string, over: Partial<PodView> = {}) =>
    makeUnderstudy(name, { kind: 'coldbackup', gate: 'waiting', ready: false, ...over })
  const wish = { replicas: 1, hotBackups: 0, coldBackups: 2 }
  const here = coldCopy(lease, 'n-c0')
  const elsewhere = coldCopy(lease, 'n-x')

  it('D7.order: goes to the cold backup on whose node its memory is, and its gate is to be opened', () => {
    const s = makeMemorySnapshot(wish, [p0, cold('c1'), cold('c0')], [makeSlot(lease, [here, elsewhere])])
    expect(ofType(s, 'promote')).toMatchObject([
      {
        pod: { name: 'c0' },
        wake: true,
        role: { slot: 0, epoch: 2, replaces: { reason: 'Died' } },
        lease: { incarnation: lease.incarnation, epoch: 2, node: 'n-c0', ip: '10.0.0.1', holders: ['n-x'] },
        origin: { how: 'Cold' },
      },
    ])
    expect(ofType(s, 'create').filter(({ kind }) => kind !== 'coldbackup')).toEqual([])
  })

  it('goes to any cold backup that can fetch its memory', () => {
    const s = makeMemorySnapshot(wish, [p0, cold('c1')], [makeSlot(lease, [elsewhere])])
    expect(ofType(s, 'promote')).toMatchObject([{ pod: { name: 'c1' }, lease: { node: 'n-c1' } }])
  })

  it('a hot backup that has to fetch it comes before a cold one that has it', () => {
    const h0 = makeUnderstudy('h0')
    const s = makeMemorySnapshot({ ...wish, hotBackups: 1 }, [p0, h0, cold('c0')], [makeSlot(lease, [here])])
    expect(ofType(s, 'promote')).toMatchObject([
      { pod: { name: 'h0' }, wake: false, origin: { how: 'Fetched' } },
    ])
  })

  it('what only stands still is not given up for one that has to start', () => {
    const still = makePrimary('p0', 0, { ready: false, unreadySince: 0 })
    const s = makeMemorySnapshot(wish, [still, cold('c0'), cold('c1')], [makeSlot(lease, [here])])
    expect(actions(s).filter(({ type }) => type !== 'writeSlot')).toEqual([])
  })

  const none = { replicas: 1, hotBackups: 0, coldBackups: 0 }
  const made = (over: Partial<PodView> = {}, on = {}) =>
    makeUnderstudy('r', { node: 'n-r', createdAt: 999_000, ...over }, { successorOf: 0, ...on })

  it('D6.created: has a pod made where its memory is, that is nobody else’s; once', () => {
    const slot = makeSlot(lease, [here, elsewhere])
    const [create] = ofType(makeMemorySnapshot(none, [p0], [slot]), 'create')
    expect(create).toMatchObject({ kind: 'hotbackup', role: undefined, successorOf: { slot: 0 } })
    expect([...(create?.successorOf?.near ?? [])].sort()).toEqual(['n-c0', 'n-x'])
    // The pod is on its way: its node begins to keep the memory, and it does not count as a hot backup.
    const waiting = makeMemorySnapshot(none, [p0, made({ ready: false })], [slot])
    expect(actions(waiting)).toMatchObject([
      { type: 'writeSlot', lease: { epoch: 1, holder: lease.holder, holders: ['n-r', 'n-c0', 'n-x'] } },
    ])
    const there = makeMemorySnapshot(none, [p0, made()], [slot])
    expect(ofType(there, 'promote')).toMatchObject([
      {
        pod: { name: 'r' },
        role: { epoch: 2 },
        lease: { incarnation: lease.incarnation },
        origin: { how: 'Created' },
      },
    ])
    expect(ofType(there, 'delete')).toEqual([])
  })

  it.each([
    ['could not be brought on stage there', made({ createdAt: 999_000 }, { failed: 'torn' }), 29_000],
    ['never came to hold the stage', made({ ready: false, createdAt: 999_000 }), 119_000],
  ])('D6.empty: has another one made after a pause when it %s, and never begins anew', (_, pod, leftMs) => {
    const slot = makeSlot(lease, [here], { vacantSince: 900 })
    const others = (s: Snapshot) => actions(s).filter(({ type }) => type !== 'writeSlot')
    const soon = makeMemorySnapshot(none, [p0, pod], [slot], { monotonicNow: 1_000 })
    expect(others(soon)).toEqual([])
    expect(plan(soon).requeueAfterMs).toBe(leftMs)
    const later = makeMemorySnapshot(none, [p0, pod], [slot], {
      now: 1_000_000 + leftMs,
      monotonicNow: 1_000,
    })
    expect(others(later)).toMatchObject([{ type: 'create', kind: 'hotbackup', successorOf: { slot: 0 } }])
    // The longer the slot has been vacant, the longer the pause.
    const long = makeMemorySnapshot(none, [p0, pod], [slot], {
      now: 1_000_000 + leftMs,
      monotonicNow: 900_000,
    })
    expect(others(long)).toEqual([])
  })

  it('has no other one made while one waits for room in the cluster, or three are there', () => {
    const slot = makeSlot(lease, [here])
    const pending = made({ node: undefined, ready: false, createdAt: 0 })
    expect(ofType(makeMemorySnapshot(none, [p0, pending], [slot]), 'create')).toEqual([])
    const three = ['a', 'b', 'c'].map(name =>
      makeUnderstudy(name, { createdAt: 0 }, { successorOf: 0, failed: 'torn' }),
    )
    expect(ofType(makeMemorySnapshot(none, [p0, ...three], [slot]), 'create')).toEqual([])
  })

  it('a pod that was made for one slot takes no other', () => {
    const p1 = makePrimary('p1', 1, dead, died)
    const lease1 = makeLease(p1, { holders: ['n-x'] })
    const slots = [makeSlot(lease, [here]), makeSlot(lease1, [coldCopy(lease1, 'n-x')])]
    const s = makeMemorySnapshot({ ...none, replicas: 2 }, [p0, p1, made()], slots)
    expect(ofType(s, 'promote').map(({ role, pod }) => [role.slot, pod.name])).toEqual([[0, 'r']])
    expect(ofType(s, 'create')).toMatchObject([{ successorOf: { slot: 1 } }])
  })

  it('D6.surplus: a pod that was made for it goes before another hot backup, but never one that works before one that does not', () => {
    const starting = makeUnderstudy('h0', { ready: false })
    const deleted = (primary: Partial<PodView>, other: PodView, pod: PodView) => {
      const p1 = makePrimary('p1', 0, primary)
      const pods = [p1, other, pod]
      const s = makeMemorySnapshot({ replicas: 1, hotBackups: 1 }, pods, [makeSlot(makeLease(p1), [])])
      return ofType(s, 'delete').map(({ pod: { name }, reason }) => [name, reason])
    }
    // Also while the new primary does not answer: the pod that was made may still be called.
    for (const primary of [{}, { ready: false, unreadySince: 999_999 }]) {
      expect(deleted(primary, starting, made())).toEqual([['h0', 'Surplus']])
      expect(deleted(primary, makeUnderstudy('h0'), made())).toEqual([['r', 'Surplus']])
      expect(deleted(primary, starting, made({ ready: false }))).toEqual([['r', 'Surplus']])
    }
    // A deletion cost on a pod outweighs that.
    expect(deleted({}, makeUnderstudy('h0', { deletionCost: -1 }), made())).toEqual([['h0', 'Surplus']])
  })

  it('a primary that is being deleted has its successor made meanwhile', () => {
    const slot = makeSlot(lease, [here], { holderGoesBy: 5_000 })
    const s = makeMemorySnapshot(none, [], [slot])
    expect(actions(s)).toMatchObject([{ type: 'create', successorOf: { slot: 0 } }])
    expect(actions(makeMemorySnapshot(none, [made()], [slot]))).toMatchObject([{ type: 'writeSlot' }])
  })

  it('a wake-up that was decided is gone on with by whoever leads next', () => {
    const called = cold('c0', { kind: 'primary', slot: 0, epoch: 2 })
    const summoned = { ...called, stage: { ...stageOf(called), promoting: true } }
    const next = { ...lease, holder: { name: 'c0', uid: called.uid }, epoch: 2, node: 'n-c0' }
    const s = makeMemorySnapshot({ ...none, coldBackups: 0 }, [p0, summoned], [makeSlot(next, [elsewhere])])
    expect(actions(s)).toMatchObject([
      { type: 'promote', wake: true, version: undefined, lease: { ...next, kept: expect.anything() } },
    ])
  })
})

describe('a promotion that is under way', () => {
  const p0 = makePrimary('p0', 0, dead, died)
  const h0 = makeUnderstudy('h0')
  const h1 = makeUnderstudy('h1')
  const lease = makeLease(p0, {
    holder: { name: 'h0', uid: h0.uid },
    epoch: 2,
    node: 'n-h0',
    holders: ['n-h1'],
  })
  const called = { kind: 'primary', slot: 0, epoch: 2, ready: false } as const
  const wish = { replicas: 1, hotBackups: 2 }
  const slot = makeSlot(lease, [makeCopy(lease, h1, 'Staged')])

  it('is taken up by whoever leads next: the Lease is not written again', () => {
    const h = makeUnderstudy('h0', called, { promoting: true })
    const s = makeMemorySnapshot(wish, [p0, h, h1], [slot])
    expect(ofType(s, 'promote')).toMatchObject([
      { pod: { name: 'h0' }, version: undefined, role: { slot: 0, epoch: 2 }, lease: slot.lease },
    ])
    expect(ofType(s, 'retire')).toEqual([])
    expect(ofType(s, 'create').filter(({ kind }) => kind === 'primary')).toEqual([])
  })

  it('is left alone while this process waits for it, and its Lease, too', () => {
    const h = makeUnderstudy('h0', { ...called, waking: true })
    expect(actions(makeMemorySnapshot(wish, [p0, h, h1], [slot]))).toEqual([])
  })

  it('that failed goes to the next pod, with an epoch of its own', () => {
    const h = makeUnderstudy('h0', {}, { failed: 'torn' })
    const s = makeMemorySnapshot(wish, [p0, h, h1], [slot])
    expect(ofType(s, 'promote')).toMatchObject([
      {
        pod: { name: 'h1' },
        role: { slot: 0, epoch: 3 },
        lease: { incarnation: lease.incarnation, epoch: 3, node: 'n-h1' },
        version: '1',
      },
    ])
    expect(ofType(s, 'retire')).toEqual([])
  })

  it('that has come to its end takes the loser off stage; the old epoch is never readmitted', () => {
    const h = makeUnderstudy('h0', { ...called, ready: true }, { serving: true })
    const s = makeMemorySnapshot({ replicas: 2, hotBackups: 1 }, [p0, h, h1], [slot])
    expect(ofType(s, 'retire')).toMatchObject([{ pod: { name: 'p0' } }])
  })

  it('leaves the loser on stage until Services that select their pods lead to its successor, for two seconds', () => {
    const onStage = (on: object) => {
      const h = makeUnderstudy(
        'h0',
        { ...called, ready: true },
        { serving: true, unpublishedMs: 1_000, ...on },
      )
      return makeMemorySnapshot({ replicas: 1, hotBackups: 1 }, [p0, h, h1], [slot])
    }
    expect(ofType(onStage({}), 'retire')).toEqual([])
    expect(plan(onStage({})).requeueAfterMs).toBe(1_000)
    expect(ofType(onStage({ selectable: true, unpublishedMs: undefined }), 'retire')).toHaveLength(1)
    expect(ofType(onStage({ unpublishedMs: 2_000 }), 'retire')).toHaveLength(1)
  })

  it('D7.lost-node: whether the node of a promoted pod is dead is asked when that can be told, and not at the next resync', () => {
    const on = { understudy: true, serving: true, unpublishedMs: 1_500 }
    const h = makePrimary('h0', 0, { ready: true }, on)
    const own = makeLease(h, {
      node: 'n-h0',
      heir: { name: 'h1', uid: h1.uid, ip: '10.0.0.1' },
      holders: ['n-h1'],
    })
    const s = makeMemorySnapshot(
      { replicas: 1, hotBackups: 1 },
      [h, h1],
      [makeSlot(own, [makeCopy(own, h1, 'Frozen')])],
    )
    expect(plan(s).requeueAfterMs).toBe(3_501)
  })
})

describe('a primary that is being deleted', () => {
  const gone = makePrimary('p0', 0)
  const h0 = makeUnderstudy('h0')
  const lease = makeLease(gone, { holders: ['n-h0'] })
  const wish = { replicas: 1, hotBackups: 1 }

  it('keeps its place until its app is stopped', () => {
    const slot = makeSlot(lease, [makeCopy(lease, h0, 'Frozen')], { holderGoesBy: 5_000 })
    expect(plan(makeMemorySnapshot(wish, [h0], [slot]))).toEqual({ tiers: [], requeueAfterMs: 4_000 })
    const stopped = makeSlot(lease, [makeCopy(lease, h0, 'Frozen')])
    expect(ofType(makeMemorySnapshot(wish, [h0], [stopped]), 'promote')).toMatchObject([
      { pod: { name: 'h0' } },
    ])
  })

  it('is not waited for where nobody could go on with its memory', () => {
    const slot = makeSlot(lease, [], { holderGoesBy: 5_000 })
    expect(ofType(makeMemorySnapshot(wish, [h0], [slot]), 'create')).toMatchObject([
      { kind: 'primary', role: { slot: 0, epoch: 2, startsEmpty: 'Gone' } },
    ])
  })

  it('is not replaced when the set has become smaller: its memory is only kept', () => {
    const slot = makeSlot(lease, [makeCopy(lease, h0, 'Frozen')])
    expect(actions(makeMemorySnapshot({ replicas: 0, hotBackups: 1 }, [h0], [slot]))).toMatchObject([
      {
        type: 'writeSlot',
        lease: { slot: 0, incarnation: lease.incarnation, retainedSince: expect.any(String) },
      },
    ])
  })
})

describe('an app that was restarted where it is', () => {
  const h0 = makeUnderstudy('h0')
  const restarted = makePrimary('p0', 0, {}, { restarts: 1 })
  const lease = makeLease(restarted, { heir: { name: 'h0', uid: h0.uid, ip: '10.0.0.1' }, holders: ['n-h0'] })
  const wish = { replicas: 1, hotBackups: 1 }
  const seen = { replacedSince: 500 }

  it('begins a new life when nobody could go on with the old one, once', () => {
    const s = makeMemorySnapshot(wish, [restarted, h0], [makeSlot(lease, [], seen)])
    const [assigned] = ofType(s, 'writeSlot')
    expect(assigned).toMatchObject({
      stateLost: true,
      restarts: 1,
      lease: { epoch: 1, holder: lease.holder },
    })
    expect(assigned?.lease.incarnation).not.toBe(lease.incarnation)
    const after = makeSlot(assigned?.lease ?? lease, [], { restarts: 1 })
    expect(ofType(makeMemorySnapshot(wish, [restarted, h0], [after]), 'writeSlot')).toEqual([])
  })

  it('D7.untold: else its agent is given the time to say that it died, and then it has died without a word', () => {
    const slot = makeSlot(lease, [makeCopy(lease, h0, 'Frozen')], seen)
    const soon = makeMemorySnapshot(wish, [restarted, h0], [slot], { monotonicNow: 1_000 })
    expect(actions(soon)).toEqual([])
    expect(plan(soon).requeueAfterMs).toBe(14_500)
    const late = makeMemorySnapshot(wish, [restarted, h0], [slot], { monotonicNow: 15_500 })
    expect(actions(late).filter(({ type }) => type !== 'create')).toMatchObject([
      { type: 'promote', pod: { name: 'h0' }, role: { replaces: { name: 'p0', reason: 'Died' } } },
    ])
  })

  it.each([
    ['cannot be brought back now', [makeCopy(lease, h0, undefined)], []],
    ['may be kept by an agent that has not said so yet', [], [{ node: 'n-h0', why: 'it starts' }]],
  ])('D7.untold: likewise where its memory %s: no other life begins', (_, copies, unasked) => {
    const slot = makeSlot({ ...lease, kept: ['n-h0'] }, copies, { ...seen, unasked })
    for (const monotonicNow of [1_000, 15_500, 9_000_000]) {
      const s = makeMemorySnapshot(wish, [restarted, h0], [slot], { monotonicNow })
      expect(actions(s)).toEqual([])
    }
  })

  it('D7.ids: its Lease goes on to name the containers of the life before, until that is settled', () => {
    const other = makePrimary('p0', 0, {}, { containers: 'app=containerd://2' })
    const first = { ...lease, containers: 'app=containerd://1' }
    const slot = makeSlot(first, [makeCopy(first, h0, 'Frozen')], seen)
    expect(actions(makeMemorySnapshot(wish, [other, h0], [slot], { monotonicNow: 1_000 }))).toEqual([])
    const gone = makeMemorySnapshot(wish, [other, h0], [makeSlot(first, [], seen)])
    expect(ofType(gone, 'writeSlot')).toMatchObject([
      { stateLost: true, lease: { containers: 'app=containerd://2' } },
    ])
  })

  it('D7.unsettled: its Lease does not name what was started again before any containers were named', () => {
    const other = makePrimary('p0', 0, {}, { containers: 'app=containerd://2', restarts: 1 })
    const named = (replaced: object) => {
      const slot = makeSlot(lease, [makeCopy(lease, h0, 'Frozen')], { ...replaced, restarts: 0 })
      const s = makeMemorySnapshot(wish, [other, h0], [slot], { monotonicNow: 1_000 })
      return ofType(s, 'writeSlot').map(action => action.lease.containers)
    }
    expect(named(seen)).toEqual([])
    expect(named({})).toEqual(['app=containerd://2'])
  })
})

describe('a memory that is being tried on the node that has it', () => {
  const gone = makePrimary('p0', 0)
  const h0 = makeUnderstudy('h0')
  const lease = makeLease(gone, { holders: ['n-h0'] })
  const wish = { replicas: 1, hotBackups: 1 }
  const { usable: _, ...kept } = makeCopy(lease, h0, 'Staged').report
  const copy = (reason: string, stale = false) => ({
    ...makeCopy(lease, h0, 'Staged'),
    report: { ...kept, reason },
    stale,
  })

  it('is waited for: the slot neither begins anew nor is looked after only when something changes', () => {
    const s = makeMemorySnapshot(wish, [h0], [makeSlot(lease, [copy('Unproven')], { vacantSince: 0 })])
    expect(ofType(s, 'create')).toEqual([])
    expect(plan(s).requeueAfterMs).toBe(5_000)
  })

  it.each([
    ['could not be brought back', copy('RestoreFailed')],
    ['is on a node whose agent is silent', copy('Unproven', true)],
  ])('is waited for just as well where it %s: it is kept', (_, there) => {
    const s = makeMemorySnapshot(wish, [h0], [makeSlot(lease, [there])])
    expect(ofType(s, 'create')).toEqual([])
  })
})

describe('backups that are none', () => {
  it('those that run the app are replaced when a set begins to keep memory', () => {
    const warm = makePod('warm', 'hotbackup')
    const s = makeMemorySnapshot({ replicas: 0, hotBackups: 1 }, [warm], [])
    expect(actions(s)).toMatchObject([
      { type: 'delete', pod: { name: 'warm' }, reason: 'Outdated' },
      { type: 'create', kind: 'hotbackup' },
    ])
  })

  it('those in which nothing can be brought back any more are replaced, and take no slot', () => {
    const primary = makePrimary('p', 0)
    const spoiled = makeUnderstudy('h', {}, { spoiled: true })
    const lease = makeLease(primary, { kept: ['n-h'] })
    const s = makeMemorySnapshot(
      { replicas: 1, hotBackups: 1 },
      [primary, spoiled],
      [makeSlot(lease, [makeCopy(lease, spoiled, 'Staged')])],
    )
    expect(actions(s)).toMatchObject([
      { type: 'delete', pod: { name: 'h' }, reason: 'Spoiled' },
      { type: 'create', kind: 'hotbackup' },
    ])
  })

  it('and those that hold the stage when it ends to', () => {
    const s = makeMemorySnapshot({ replicas: 0, hotBackups: 1, memory: undefined }, [makeUnderstudy('h')], [])
    const { memory: _, ...without } = s
    expect(actions(without)).toMatchObject([
      { type: 'delete', pod: { name: 'h' }, reason: 'Outdated' },
      { type: 'create', kind: 'hotbackup' },
    ])
  })
})

/** An event that hits a set between two passes. */
const events = fc.oneof(
  ...(
    [
      ...(['die', 'delete', 'linger', 'restart', 'unready', 'lose-hot', 'lose-cold'] as const),
      // The node's copies are gone; cannot be restored now; are unknown, because its agent starts.
      ...(['emptied', 'unable', 'silent'] as const),
    ] as const
  ).map(type => fc.record({ type: fc.constant(type), which: fc.nat(20) })),
  fc.record({ type: fc.constant('scale' as const), which: fc.nat(3), hot: fc.nat(3) }),
)
type Event = typeof events extends fc.Arbitrary<infer T> ? T : never

function happens(s: Snapshot, event: Event): Snapshot {
  const slots = [...(s.memory?.slots.values() ?? [])]
  const keep = { monotonicNow: s.monotonicNow, ...(s.retired && { retired: s.retired }) }
  const nodes = [...(s.memory?.nodes.keys() ?? [])]
  const withPods = (pods: readonly PodView[]) => makeMemorySnapshot(s.set, pods, slots, keep, nodes)
  if (event.type === 'scale')
    return makeMemorySnapshot(
      { ...s.set, replicas: event.which, hotBackups: event.hot },
      s.pods,
      slots,
      keep,
      nodes,
    )
  const withSlots = (change: (slot: SlotMemory) => SlotMemory, pods = s.pods) =>
    makeMemorySnapshot(s.set, pods, slots.map(change), keep, nodes)
  const kind =
    event.type === 'lose-cold'
      ? 'coldbackup'
      : ['lose-hot', 'emptied', 'unable', 'silent'].includes(event.type)
        ? 'hotbackup'
        : 'primary'
  const those = s.pods.filter(pod => pod.kind === kind)
  const hit = those[event.which % Math.max(1, those.length)]
  if (hit === undefined) return s
  const others = s.pods.filter(pod => pod !== hit)
  switch (event.type) {
    case 'die':
      return withPods([
        ...others,
        { ...hit, ready: false, stage: { ...stageOf(hit), died: true, serving: false } },
      ])
    case 'restart':
      return hit.stage?.understudy
        ? s
        : withSlots(slot =>
            // Either just now, or so long ago that no agent will report it any more.
            slot.lease.holder.uid === hit.uid
              ? { ...slot, replacedSince: s.monotonicNow - (event.which % 2) * 20_000 }
              : slot,
          )
    case 'unready':
      return withPods([...others, { ...hit, ready: false, unreadySince: 0 }])
    case 'linger':
      return withSlots(
        slot =>
          slot.lease.holder.uid === hit.uid ? { ...slot, holderGoesBy: s.monotonicNow + 1_000 } : slot,
        others,
      )
    case 'emptied':
    case 'unable':
    case 'silent':
      return withSlots(slot => {
        const left = slot.copies.filter(({ node }) => node !== hit.node)
        const there = slot.copies.filter(({ node }) => node === hit.node)
        if (event.type === 'emptied') return { ...slot, copies: left }
        if (event.type === 'silent')
          return {
            ...slot,
            copies: left,
            unasked: [...slot.unasked, ...there.map(({ node }) => ({ node, why: 'it starts' }))],
          }
        const unable = there.map(({ report: { usable: _, ...report }, ...copy }) => ({ ...copy, report }))
        return { ...slot, copies: [...left, ...unable] }
      })
    case 'delete':
    case 'lose-hot':
    case 'lose-cold':
      return withPods(others)
  }
}
const stageOf = (pod: PodView) => pod.stage ?? makeUnderstudy('x').stage ?? never()
const kinds = ['primary', 'hotbackup', 'coldbackup'] as const
const never = (): never => {
  throw new Error('a pod without stage')
}

/** Checks the invariants of every plan, in any state. */
function check(s: Snapshot, all: readonly Action[]): void {
  const touched = all.flatMap(action => ('pod' in action ? [action.pod.uid] : []))
  expect(new Set(touched).size, 'one action a pod').toBe(touched.length)
  const named = new Set([...(s.memory?.slots.values() ?? [])].map(({ lease }) => lease.holder.uid))
  for (const action of all) {
    if (action.type === 'promote') {
      const slot = s.memory?.slots.get(action.role.slot)
      const isKept = slot?.copies.some(({ report }) => report.usable !== undefined)
      if (action.version !== undefined) expect(isKept, 'only with its memory').toBe(true)
      expect(action.lease.incarnation, 'in the same life').toBe(slot?.lease.incarnation)
      expect(action.role.epoch).toBeGreaterThanOrEqual(slot?.lease.epoch ?? 0)
      expect(action.pod.stage?.understudy).toBe(true)
    }
    if (action.type === 'create' && action.role?.startsEmpty) {
      const slot = s.memory?.slots.get(action.role.slot)
      const left = [...(slot?.copies ?? []), ...(slot?.unasked ?? [])]
      expect(left, 'empty only where nobody is left who has the memory, or might').toEqual([])
    }
    if (action.type === 'create' && action.successorOf !== undefined) {
      const left = s.pods.filter(
        pod =>
          (pod.kind === 'hotbackup' ? pod.ready : pod.kind === 'coldbackup' && pod.gate === 'waiting') &&
          stageOf(pod).failed === undefined &&
          (stageOf(pod).successorOf ?? action.successorOf?.slot) === action.successorOf?.slot &&
          !touched.includes(pod.uid) &&
          !named.has(pod.uid),
      )
      expect(left, 'made only where no backup is left').toEqual([])
    }
    if (action.type === 'convert') expect(action.to, 'no label without memory').not.toBe('primary')
    if (action.type === 'delete' && action.pod.kind === 'primary' && action.pod.ready)
      expect(['Surplus', 'Retired'], `${action.pod.name} serves`).toContain(action.reason)
    if (action.type === 'writeSlot') {
      const present = s.memory?.slots.get(action.lease.slot)
      if (action.stateLost)
        expect([present?.copies, present?.unasked], 'a life ends only where its memory is gone').toEqual([
          [],
          [],
        ])
      expect(action.lease.epoch).toBeGreaterThanOrEqual(present?.lease.epoch ?? 0)
      expect(action.lease.holders).not.toContain(action.lease.node)
      if (!action.stateLost && present?.lease.holder.uid === action.lease.holder.uid)
        expect(action.lease.incarnation).toBe(present.lease.incarnation)
    }
  }
  const leased = all.flatMap(action =>
    action.type === 'writeSlot' || action.type === 'promote' ? [action.lease.slot] : [],
  )
  expect(new Set(leased).size, 'one write a Lease').toBe(leased.length)
}

it('comes to rest in its numbers, with a Lease for each primary, after any walk; memory goes on wherever it can', () => {
  fc.assert(
    fc.property(
      fc.array(events, { maxLength: 20 }),
      fc.array(fc.boolean(), { maxLength: 10 }),
      fc.nat(),
      (walk, torn, seed) => {
        const draws = seededRandom(seed)
        let tries = 0
        const answers = { comes: () => torn[tries++] !== true }
        let s = makeMemorySnapshot({ replicas: 2, hotBackups: 2, coldBackups: 1 }, [], [], {}, ['n-x', 'n-y'])
        const pass = () => {
          const next = decide(s, draws)
          check(s, actionsOf(next))
          s = played(s, next, answers)
          return next.tiers.length
        }
        for (let i = 0; i < 4; i += 1) pass()
        for (const event of walk) {
          s = happens(s, event)
          pass()
        }
        const healed = () =>
          staged(
            makeMemorySnapshot(
              s.set,
              s.pods.map(pod =>
                pod.stage?.died
                  ? pod
                  : {
                      ...pod,
                      ready: pod.kind !== 'coldbackup',
                      unreadySince: undefined,
                      stage: { ...stageOf(pod), failed: undefined },
                    },
              ),
              // The agents are back: their copies are usable, and memory that no node has shown by now is gone.
              [...(s.memory?.slots.values() ?? [])].map(slot => ({
                ...slot,
                holderGoesBy: undefined,
                unasked: [],
                copies: slot.copies.map(copy => ({ ...copy, report: { usable: 'Cold', ...copy.report } })),
              })),
              { monotonicNow: s.monotonicNow + 5_000, ...(s.retired && { retired: s.retired }) },
              ['n-x', 'n-y'],
            ),
          )
        let passes = 0
        for (s = healed(); pass() > 0; s = healed()) {
          passes += 1
          if (passes > 60) throw new Error('does not come to rest')
        }
        const ofKind = (kind: PodView['kind']) => s.pods.filter(pod => pod.kind === kind)
        const { replicas, hotBackups } = s.set
        expect(kinds.map(kind => ofKind(kind).length)).toEqual([replicas, hotBackups, 1])
        expect(s.retired ?? []).toEqual([])
        const all = [...(s.memory?.slots.values() ?? [])].map(({ lease }) => lease)
        // Slots that the set has no place for are only kept.
        const leases = all.filter(({ retainedSince }) => retainedSince === undefined)
        expect(leases.map(({ holder }) => holder.uid).sort()).toEqual(
          ofKind('primary')
            .map(({ uid }) => uid)
            .sort(),
        )
        for (const { slot, epoch, heir, node } of leases) {
          const primary = ofKind('primary').find(pod => pod.slot === slot)
          expect(primary?.epoch).toBe(epoch)
          const able = ofKind('hotbackup').filter(pod => pod.node !== node)
          expect(heir === undefined).toBe(able.length === 0)
        }
      },
    ),
    { numRuns: 300 },
  )
}, 60_000)

describe('a set whose memory must not be kept', () => {
  const p0 = makePrimary('p0', 0)
  const h0 = makeUnderstudy('h0')
  const refusing = (slots: Parameters<typeof makeMemorySnapshot>[2], refusedForLong = true) => {
    const s = makeMemorySnapshot({ replicas: 1, hotBackups: 1 }, [p0, h0], slots, {}, ['n-p0', 'n-x'])
    if (s.memory === undefined) throw new Error('no memory')
    return {
      ...s,
      memory: { ...s.memory, refused: { reason: 'ClaimNotShared', message: 'no' }, refusedForLong },
    }
  }

  it('has Leases that name no heir and no node: nobody saves anything', () => {
    expect(ofType(refusing([]), 'writeSlot')).toMatchObject([
      { lease: { holder: { name: 'p0' }, heir: undefined, holders: [] } },
    ])
  })

  it('takes back what was assigned before, and touches no pod for it', () => {
    const lease = makeLease(p0, { heir: { name: 'h0', uid: h0.uid, ip: '10.0.0.1' }, holders: ['n-h0'] })
    const s = refusing([makeSlot(lease, [makeCopy(lease, h0, 'Frozen')])])
    expect(actions(s)).toMatchObject([
      { type: 'writeSlot', lease: { incarnation: lease.incarnation, heir: undefined, holders: [] } },
    ])
    const empty = { ...lease, heir: undefined, holders: [], unsaved: true }
    expect(actions(refusing([makeSlot(empty, [])]))).toEqual([])
  })

  it('D7.kept: costs no copy while it may pass: nothing is saved, and all stays where it is', () => {
    const heir = { name: 'h0', uid: h0.uid, ip: '10.0.0.1' }
    const lease = makeLease(p0, { heir, holders: ['n-h0'], kept: ['n-h0'] })
    const slot = makeSlot(lease, [makeCopy(lease, h0, 'Frozen')])
    expect(actions(refusing([slot], false))).toMatchObject([
      {
        type: 'writeSlot',
        lease: { incarnation: lease.incarnation, heir, holders: ['n-h0'], kept: ['n-h0'], unsaved: true },
      },
    ])
    expect(actions(refusing([{ ...slot, lease: { ...lease, unsaved: true } }], false))).toEqual([])
    // No new slot gets copies, either.
    expect(ofType(refusing([], false), 'writeSlot')).toMatchObject([
      { lease: { heir: undefined, holders: [] } },
    ])
    // A primary that dies is followed by a successor.
    const gone = { ...p0, ready: false, stage: { ...p0.stage, died: true } } as PodView
    const s = refusing([slot], false)
    expect(ofType({ ...s, pods: [gone, h0] }, 'promote')).toMatchObject([{ pod: { name: 'h0' } }])
  })
})

describe('the Lease of a primary', () => {
  const p0 = makePrimary('p0', 0)
  const h0 = makeUnderstudy('h0')
  const lease = makeLease(p0, { heir: { name: 'h0', uid: h0.uid, ip: '10.0.0.1' }, holders: ['n-h0'] })
  const key = 'a'.repeat(64)
  const signers = (slots: readonly Parameters<typeof makeSlot>[]) => {
    const s = makeMemorySnapshot(
      { replicas: 1, hotBackups: 1 },
      [p0, h0],
      slots.map(each => makeSlot(...each)),
    )
    const nodes = new Map(
      ['n-p0', 'n-h0'].map(name => [name, { name, ready: true, problem: undefined, signer: key }]),
    )
    if (s.memory === undefined) throw new Error('no memory')
    return ofType({ ...s, memory: { ...s.memory, nodes } }, 'writeSlot')[0]?.lease.signers
  }
  const source = (signed: boolean) => ({
    source: { ...makeCopy(lease, p0, undefined, { signed }).report, role: 'source' as const },
  })

  it('names the key that signs its memory from the beginning', () => {
    expect(signers([])).toEqual([{ epoch: 1, fingerprint: key }])
    expect(signers([[lease, []]])).toEqual([{ epoch: 1, fingerprint: key }])
  })

  it('rolling upgrade: of memory that is there already not before a holder has it signed', () => {
    const copy = (signed: boolean) => [makeCopy(lease, h0, 'Frozen', { signed })]
    expect(signers([[lease, copy(false), source(false)]])).toBeUndefined()
    expect(signers([[lease, copy(false), source(true)]])).toBeUndefined()
    expect(signers([[lease, copy(true), source(true)]])).toEqual([{ epoch: 1, fingerprint: key }])
  })
})

it('D7.owner: a slot of whose name another Lease is there is written when that is gone, and its primary starts meanwhile', () => {
  const s = makeMemorySnapshot({ replicas: 1, hotBackups: 0 }, [makePrimary('p0', 0)], [])
  if (s.memory === undefined) throw new Error('no memory')
  expect(ofType(s, 'writeSlot')).toHaveLength(1)
  expect(actions({ ...s, memory: { ...s.memory, foreign: new Set([0]) } })).toEqual([])
})

describe('a primary that hangs', () => {
  const hung = makePrimary('p0', 0, { ready: false, unreadySince: 0 })
  const h0 = makeUnderstudy('h0')
  const lease = makeLease(hung, { heir: { name: 'h0', uid: h0.uid, ip: '10.0.0.1' }, holders: ['n-h0'] })
  const at = (endingSince: number | undefined, nodes: readonly string[], pod = hung) => {
    const held = endingSince === undefined ? lease : { ...lease, ending: hung.uid }
    const slot = makeSlot(held, [makeCopy(lease, h0, 'Frozen')], { endingSince })
    return makeMemorySnapshot(
      { replicas: 1, hotBackups: 1 },
      [pod, h0],
      [slot],
      { monotonicNow: 10_000 },
      nodes,
    )
  }

  it('D7.ending: is ended before another one is called, so that two never run; not for ever', () => {
    const first = at(undefined, ['n-p0', 'n-h0'])
    expect(actions(first)).toMatchObject([
      { type: 'writeSlot', lease: { ending: hung.uid, epoch: 1, incarnation: lease.incarnation } },
    ])
    const waits = at(4_000, ['n-p0', 'n-h0'])
    expect(actions(waits)).toEqual([])
    expect(plan(waits).requeueAfterMs).toBe(4_000)
    expect(ofType(at(0, ['n-p0', 'n-h0']), 'promote')).toMatchObject([
      { lease: { ending: undefined, epoch: 2 } },
    ])
  })

  it('D7.ending: at once where its agent has said that it has ended, and where no agent is there to say it', () => {
    const ended = makePrimary('p0', 0, dead, died)
    expect(ofType(at(9_000, ['n-p0', 'n-h0'], ended), 'promote')).toHaveLength(1)
    expect(ofType(at(undefined, ['n-h0']), 'promote')).toHaveLength(1)
  })

  it('D7.ending: one that is well again meanwhile stays', () => {
    const well = makePrimary('p0', 0)
    expect(actions(at(9_000, ['n-p0', 'n-h0'], well))).toMatchObject([
      { type: 'writeSlot', lease: { ending: undefined } },
    ])
  })
})

describe('D7.ending: a pod that was called and did not answer in time', () => {
  const p0 = makePrimary('p0', 0)
  const h1 = makeUnderstudy('h1')
  const slow = makeUnderstudy('h0', {}, { failed: 'it did not serve within 10 s', late: true })
  const lease = makeLease(p0, {
    ...{ holder: { name: 'h0', uid: slow.uid }, node: 'n-h0', epoch: 2, holders: ['n-h1'] },
    kept: ['n-h1'],
  })
  const told = { ...lease, ending: slow.uid }
  const able = ['n-h0', 'n-h1']
  const wish = { replicas: 1, hotBackups: 2 }
  const at = (
    given: typeof lease,
    over: Partial<SlotMemory> = {},
    pods: readonly PodView[] = [slow, h1],
    nodes: readonly string[] = able,
  ) => {
    const slot = makeSlot(given, [makeCopy(given, h1, 'Staged')], over)
    return makeMemorySnapshot(wish, pods, [slot], { monotonicNow: 50_000 }, nodes)
  }

  it('is ended before another one is called, for it may run by now; not for ever', () => {
    expect(ofType(at(lease), 'promote')).toEqual([])
    expect(ofType(at(lease), 'writeSlot')).toMatchObject([
      { lease: { ...lease, ending: slow.uid }, version: '1' },
    ])
    const waits = at(told, { endingSince: 44_000 })
    expect(actions(waits)).toEqual([])
    expect(plan(waits).requeueAfterMs).toBe(4_000)
    expect(ofType(at(told, { endingSince: 40_000 }), 'promote')).toMatchObject([
      { pod: { name: 'h1' }, lease: { ending: undefined, epoch: 3 } },
    ])
  })

  it('and the next one is called at once where it has ended, cannot run, or no agent is there to end it', () => {
    const calls = (pod: PodView, nodes = able) =>
      ofType(at(lease, {}, [pod, h1], nodes), 'promote').map(it => it.pod.name)
    expect(calls(slow)).toEqual([])
    expect(calls(slow, ['n-h1'])).toEqual(['h1'])
    expect(calls(makeUnderstudy('h0', {}, { failed: 'its app has ended', died: true }))).toEqual(['h1'])
    expect(calls(makeUnderstudy('h0', {}, { failed: 'torn' }))).toEqual(['h1'])
  })

  it('goes on where nobody else is there any more, and when it is called again', () => {
    expect(ofType(at(told, { endingSince: 49_000 }, [slow]), 'writeSlot')).toMatchObject([
      { lease: { ending: undefined, holder: { name: 'h0' } } },
    ])
    const called = { kind: 'primary', slot: 0, epoch: 2, ready: false, waking: true } as const
    const again = makeUnderstudy('h0', called, { promoting: true })
    expect(ofType(at(told, { endingSince: 49_000 }, [again, h1]), 'writeSlot')).toMatchObject([
      { lease: { ending: undefined, holder: { name: 'h0' } } },
    ])
  })

  it('has as long as those before it had, when it is not the first', () => {
    const times = { comingSince: 20_000, calledSince: 38_000 }
    expect(actions(at(lease, times))).toEqual([])
    expect(plan(at(lease, times)).requeueAfterMs).toBe(6_000)
    expect(ofType(at(lease, { comingSince: 26_000, calledSince: 38_000 }), 'writeSlot')).toMatchObject([
      { lease: { ending: slow.uid } },
    ])
    // Without an agent on its node the pod does not come.
    expect(ofType(at(lease, times, [slow, h1], ['n-h1']), 'promote')).toHaveLength(1)
    // A pod that could follow is made meanwhile, and a pod that was made stays.
    const none = { ...at(lease, times, [slow]), set: { ...at(lease).set, hotBackups: 1 } }
    expect(ofType(none, 'create')).toMatchObject([{ successorOf: { slot: 0 } }])
    for (const over of [times, {}]) {
      const made = at(lease, over, [slow, makeUnderstudy('h1', {}, { successorOf: 0 })])
      expect(ofType({ ...made, set: { ...made.set, hotBackups: 1 } }, 'delete')).toEqual([])
    }
  })

  it('is not deleted for its gate, which it has passed, if it was a cold backup', () => {
    const cold = { ...slow, kind: 'coldbackup', gate: 'open' } as const
    const others = [makeUnderstudy('c1', { kind: 'coldbackup', gate: 'open' }), h1]
    const s = at(lease, {}, [cold, ...others])
    const deleted = ofType({ ...s, set: { ...s.set, hotBackups: 1, coldBackups: 1 } }, 'delete')
    expect(deleted).toMatchObject([{ pod: { name: 'c1' }, reason: 'GateSpent' }])
  })
})

it('D7.kept: the node of the one before, and of one that was called in vain, goes on to keep the memory', () => {
  const p0 = makePrimary('p0', 0, dead, died)
  const [h0, h1] = [makeUnderstudy('h0'), makeUnderstudy('h1')]
  const lease = makeLease(p0, { holders: ['n-h0', 'n-h1'] })
  const copies = [makeCopy(lease, h0, 'Frozen'), makeCopy(lease, h1, 'Staged')]
  const wish = { replicas: 1, hotBackups: 2 }
  const first = makeMemorySnapshot(wish, [p0, h0, h1], [makeSlot(lease, copies, { sourceKeeps: true })])
  expect(ofType(first, 'promote')).toMatchObject([
    { lease: { holders: ['n-h1', 'n-p0'], kept: ['n-h0', 'n-h1', 'n-p0'] } },
  ])
  // The pod did not come; its node reports its memory as the node of the slot's primary.
  const called = makeLease(h0, { slot: 0, epoch: 2, node: 'n-h0', holders: ['n-h1', 'n-p0'] })
  const torn = makeUnderstudy('h0', {}, { failed: 'torn' })
  const second = makeMemorySnapshot(
    wish,
    [p0, torn, h1],
    [makeSlot(called, [makeCopy(called, h1, 'Staged')], { sourceKeeps: true })],
  )
  expect(ofType(second, 'promote')).toMatchObject([
    { pod: { name: 'h1' }, lease: { holders: ['n-p0', 'n-h0'] } },
  ])
})

describe('D7.kept: a copy is let go only for one that is as new', () => {
  const p0 = makePrimary('p0', 0)
  const h0 = makeUnderstudy('h0')
  const lease = makeLease(p0, { holders: ['n-h0', 'a'], kept: ['n-h0', 'a'] })
  const wish = { replicas: 1, hotBackups: 1 }
  const holders = (of: Partial<Copy>, report: Partial<Copy['report']>, over: Partial<SlotMemory> = {}) => {
    const here = { ...makeCopy(lease, h0, 'Staged', report), ...of }
    const other = coldCopy(lease, 'a')
    const copies = [here, { ...other, report: { ...other.report, epoch: 1, generation: 57 } }]
    const s = makeMemorySnapshot(wish, [p0, h0], [makeSlot(lease, copies, over)])
    if (s.memory === undefined) throw new Error('a set without memory')
    const [next] = ofType({ ...s, memory: { ...s.memory, copies: 1 } }, 'writeSlot')
    return [next?.lease.holders, next?.lease.kept]
  }
  const both = [
    ['n-h0', 'a'],
    ['n-h0', 'a'],
  ]
  it.each([
    ['of many generations before', {}, { epoch: 1, generation: 3 }, both],
    ['of an epoch before', {}, { epoch: 0, generation: 60 }, both],
    ['of a node that may be dead', { timely: false }, { epoch: 1, generation: 57 }, both],
    ['of the generation before', {}, { epoch: 1, generation: 56 }, [['n-h0'], ['n-h0', 'a']]],
  ])('%s', (_, of, report, expected) => {
    expect(holders(of, report)).toEqual(expected)
  })

  it('and none once another app runs in the primary: what is kept is all that there is', () => {
    expect(holders({}, { epoch: 1, generation: 56 }, { replacedSince: 900 })).toEqual(both)
  })

  it('D7.let-go: who was let go is asked as long as it is heard, and nobody where none is to be kept', () => {
    const former = makeLease(p0, { holders: ['n-h0'], kept: ['n-h0', 'a'] })
    const keptNext = (over: Partial<Copy>, memory: object = {}, slot: Partial<SlotMemory> = {}) => {
      const copies = [makeCopy(former, h0, 'Staged'), { ...coldCopy(former, 'a'), ...over }]
      const s = makeMemorySnapshot(wish, [p0, h0], [makeSlot({ ...former, ip: '10.0.0.9' }, copies, slot)])
      if (s.memory === undefined) throw new Error('a set without memory')
      return ofType({ ...s, memory: { ...s.memory, copies: 1, ...memory } }, 'writeSlot')[0]?.lease.kept
    }
    expect(keptNext({ stale: true, silent: true })).toEqual(['n-h0'])
    // Its agent only starts.
    expect(keptNext({ stale: true }, { copies: 2 })).toEqual(['n-h0', 'a'])
    expect(keptNext({ stale: true, silent: true }, {}, { fetching: ['b', 'n-h0'] })).toEqual(['n-h0', 'b'])
    const refused = { refused: { reason: 'r', message: 'm' }, refusedForLong: true }
    expect(keptNext({}, refused)).toEqual([])
  })
})

it('D7.signers: whose key has signed is known of each epoch of which somebody has memory, or may have', () => {
  const p0 = makePrimary('p0', 0, { ...dead, epoch: 40 }, died)
  const h0 = makeUnderstudy('h0')
  const signers = Array.from({ length: 40 }, (_, i) => ({ epoch: 40 - i, fingerprint: 'a'.repeat(64) }))
  const lease = { ...makeLease(p0, { holders: ['n-h0'], kept: ['n-h0'] }), signers }
  const epochs = (over: Partial<SlotMemory>) => {
    const slot = makeSlot(lease, [makeCopy(lease, h0, 'Staged', { epoch: 3 })], over)
    const s = makeMemorySnapshot({ replicas: 1, hotBackups: 1 }, [p0, h0], [slot])
    return ofType(s, 'promote')[0]?.lease.signers?.map(({ epoch }) => epoch)
  }
  expect(epochs({})).toHaveLength(33)
  expect(epochs({})?.at(-1)).toBe(3)
  expect(epochs({ unasked: [{ node: 'x', why: 'its agent is silent' }] })).toHaveLength(41)
})

describe('D7.newest: who cannot get the newest memory', () => {
  const p0 = makePrimary('p0', 0, dead, died)
  const h0 = makeUnderstudy('h0')
  const lease = makeLease(p0, { holders: ['n-h0', 'a'], kept: ['n-h0', 'a'] })
  const wish = { replicas: 1, hotBackups: 1 }
  const newest = { ...coldCopy(lease, 'a') }
  const far = { ...newest, report: { ...newest.report, epoch: 1, generation: 57 } }
  const here = (report: Partial<Copy['report']> = {}) =>
    makeCopy(lease, h0, 'Staged', { epoch: 1, generation: 3, ...report })
  const world = (copies: readonly Copy[], over: Partial<SlotMemory> = {}, pods = [p0, h0]) =>
    makeMemorySnapshot(wish, pods, [makeSlot(lease, copies, { vacantSince: 0, ...over })], {
      monotonicNow: 9_000,
    })
  const leastOf = (s: Snapshot) => ofType(s, 'promote').map(({ lease: next }) => next.atLeast)

  it('is called with what it has to go on with, as long as somebody says so who could bring it back', () => {
    expect(leastOf(world([here(), far]))).toMatchObject([{ epoch: 1, generation: 57 }])
    expect(leastOf(world([here(), { ...far, timely: false }]))).toMatchObject([{ epoch: 1, generation: 3 }])
    const unusable = { ...far, report: makeCopy(lease, h0, undefined, { epoch: 1, generation: 57 }).report }
    expect(leastOf(world([here(), unusable]))).toMatchObject([{ epoch: 1, generation: 3 }])
  })

  it('is not called either if one save after another failed before the newest', () => {
    const at = (generation: number, takenAt: string) => ({ epoch: 1, generation, takenAt })
    const before = at(56, '2026-11-25T12:00:00.000Z')
    const stuck = here({ ...before, reason: 'PeerUnreachable' })
    const last = (takenAt: string) => ({ ...far, report: { ...far.report, ...at(57, takenAt) } })
    expect(leastOf(world([stuck, last('2026-11-25T12:00:03.000Z')]))).toEqual([
      { epoch: 1, generation: 57, takenAt: Date.parse('2026-11-25T12:00:03.000Z') },
    ])
    expect(leastOf(world([stuck, last('2026-11-25T12:00:07.000Z')]))).toEqual([])
  })

  it.each(['StoreFull', 'PeerUnreachable'])(
    'and says so (%s) is not called: a pod is made where it is',
    reason => {
      const s = world([here({ reason }), far])
      expect(ofType(s, 'promote')).toEqual([])
      expect(ofType(s, 'create')).toMatchObject([{ successorOf: { slot: 0, near: ['a'] } }])
      // The generations that it lacks exist nowhere any more.
      expect(leastOf(world([here({ reason })]))).toMatchObject([{ epoch: 1, generation: 3 }])
    },
  )

  it('is not called before the node of who has just died has said what it has', () => {
    const saved = makeCopy(lease, h0, undefined, { role: 'source', epoch: 1, generation: 3 }).report
    const { usable: _, ...source } = saved
    const called = (copy: Copy, monotonicNow = 9_000, said: Partial<Copy['report']> = {}) => {
      const over = { vacantSince: 8_000, source: { ...source, ...said }, sourceSeenAt: 0 }
      const s = { ...world([copy], over), monotonicNow }
      return [ofType(s, 'promote').length, ofType(s, 'create').length, plan(s).requeueAfterMs]
    }
    const stuck = here({ reason: 'PeerUnreachable' })
    expect(called(stuck)).toEqual([0, 0, 1_000])
    expect(called(here())[0]).toBe(1)
    expect(called(stuck, 10_000)[0]).toBe(1)
    expect(called(stuck, 9_000, { usable: 'Cold' })[0]).toBe(1)
    expect(called(stuck, 9_000, { generation: 0 })[0]).toBe(1)
  })

  it('goes on with what it has when two minutes have brought nobody else', () => {
    const s = { ...world([here({ reason: 'StoreFull' }), far]), monotonicNow: 120_000 }
    expect(leastOf(s)).toEqual([undefined])
  })

  it('and was called already is told when the newest is not to be had any more', () => {
    const torn = makeUnderstudy('h0', {}, { failed: 'newer memory is elsewhere' })
    const called = makeLease(torn, {
      ...lease,
      epoch: 2,
      node: 'n-h0',
      holder: { name: 'h0', uid: torn.uid },
    })
    const asked = { ...called, atLeast: { epoch: 1, generation: 57, takenAt: 0 } }
    const told = (copies: readonly Copy[], monotonicNow = 9_000) => {
      const s = makeMemorySnapshot(wish, [torn], [makeSlot(asked, copies, { vacantSince: 0 })], {
        monotonicNow,
      })
      return ofType(s, 'writeSlot').map(({ lease: next }) => next.atLeast)
    }
    expect(told([here(), far])).toEqual([])
    expect(told([here(), { ...far, timely: false }])).toMatchObject([{ epoch: 1, generation: 3 }])
    expect(told([here(), far], 120_000)).toEqual([undefined])
  })

  it('is asked for newer memory that a node reports after the call', () => {
    const comes = makeUnderstudy('h0', { kind: 'primary', slot: 0, epoch: 2 }, { promoting: true })
    const called = makeLease(comes, {
      ...lease,
      epoch: 2,
      node: 'n-h0',
      holder: { name: 'h0', uid: comes.uid },
    })
    const least = { epoch: 1, generation: 3, takenAt: 0 }
    const told = (last: Copy, asked: object = { atLeast: least }) => {
      const slot = makeSlot({ ...called, ...asked }, [here(), last], {
        ...{ vacantSince: 8_000, calledSince: 8_000, comingSince: 8_000 },
      })
      const s = makeMemorySnapshot(wish, [comes], [slot], { monotonicNow: 9_000 })
      return ofType(s, 'writeSlot').map(({ lease: next }) => next.atLeast)
    }
    const next = { ...far, report: { ...far.report, generation: 4 } }
    expect(told(far)).toMatchObject([{ epoch: 1, generation: 57 }])
    // Generation 4 may be in transit.
    expect(told(next)).toEqual([])
    // A Lease that asks for nothing does so after a long time without success.
    expect(told(far, {})).toEqual([])
  })
})

describe('D7.kept: memory that only the node of the last primary has', () => {
  const h0 = makeUnderstudy('h0', {}, { failed: 'its app has ended' })
  const lease = makeLease(h0, { slot: 0, epoch: 2, holders: ['a'], kept: ['n-h0'] })
  const wish = { replicas: 1, hotBackups: 1 }
  const slot = makeSlot(lease, [makeCopy(lease, h0, undefined, { usable: 'Cold', role: 'source' })], {
    sourceKeeps: true,
  })
  it('goes on in a backup of that node', () => {
    const next = makeUnderstudy('h1', { node: 'n-h0' })
    expect(ofType(makeMemorySnapshot(wish, [h0, next], [slot]), 'promote')).toMatchObject([
      { pod: { name: 'h1' }, lease: { node: 'n-h0', kept: ['n-h0'] } },
    ])
  })
  it('goes on in a pod that is made near it, if there is none', () => {
    expect(ofType(makeMemorySnapshot(wish, [h0], [slot]), 'create')).toMatchObject([
      { successorOf: { slot: 0, near: ['n-h0'] } },
    ])
  })
  it('is waited for while it says nothing, wherever the slot has been called to', () => {
    const silent = makeSlot({ ...lease, node: 'n-h0' }, [], {
      sourceKeeps: true,
      unasked: [{ node: 'n-h0', why: 'its agent is silent' }],
    })
    const other = makeUnderstudy('h1')
    const s = makeMemorySnapshot(wish, [h0, other], [silent])
    expect(ofType(s, 'create').filter(({ kind }) => kind === 'primary')).toEqual([])
  })
  it('D7.holder-asked: and is named in the Lease, for its pod may be gone before it has', () => {
    const p0 = makePrimary('p0', 0, dead, died)
    const untold = makeLease(p0, { holders: ['a'], kept: [] })
    const kept = (unasked: SlotMemory['unasked']) => {
      const s = makeMemorySnapshot({ replicas: 1, hotBackups: 0 }, [p0], [makeSlot(untold, [], { unasked })])
      return ofType(s, 'writeSlot').map(({ lease: next }) => next.kept)
    }
    expect(kept([{ node: 'n-p0', why: 'its agent has not reported its copies yet' }])).toEqual([['n-p0']])
    expect(kept([])).toEqual([])
  })
  it('is named in the Lease of who is on stage', () => {
    const p0 = makePrimary('p0', 0)
    const own = makeLease(p0)
    const kept = (sourceKeeps: boolean) => {
      const s = makeMemorySnapshot(
        { replicas: 1, hotBackups: 0 },
        [p0],
        [makeSlot(own, [], { sourceKeeps })],
        {},
        ['a'],
      )
      return ofType(s, 'writeSlot')[0]?.lease.kept
    }
    expect([kept(true), kept(false)]).toEqual([['n-p0'], []])
  })
})

it('D7.holders: nodes of cold backups and others get a copy only where the template may run', () => {
  const p0 = makePrimary('p0', 0)
  const c0 = makePod('c0', 'coldbackup', { node: 'n-c0' })
  const names = ['n-p0', 'n-c0', 'a', 'b', 'c']
  const holders = (...forbidden: readonly string[]) => {
    const s = makeMemorySnapshot({ replicas: 1, coldBackups: 1 }, [p0, c0], [], {}, names)
    const nodes = new Map(
      [...(s.memory?.nodes ?? [])].map(([name, node]) => [
        name,
        { ...node, forbidden: forbidden.includes(name) },
      ]),
    )
    if (s.memory === undefined) throw new Error('a set without memory')
    return ofType({ ...s, memory: { ...s.memory, nodes } }, 'writeSlot')[0]?.lease.holders
  }
  expect(holders()).toEqual(['n-c0', 'a'])
  expect(holders('n-c0', 'a')).toEqual(['b', 'c'])
  expect(holders('n-c0', 'a', 'b', 'c')).toEqual([])
})
