import { describe, expect, it } from 'vitest'
import type { SlotMemory } from '../../slot/decide/memory-view.ts'
import { makeCopy, makeLease, makeSlot } from '../../slot/testing/slots.ts'
import type { PodView, Snapshot } from '../snapshot.ts'
import { actions, dead, died, ofType, plan } from '../testing/decided.ts'
import {
  coldCopy,
  makeMemorySnapshot,
  makePrimary,
  makeUnderstudy,
  parsedMemory,
  stageOf,
} from '../testing/memory.ts'

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

  it('a wake-up that was decided is gone on with by whoever leads next', () => {
    const called = cold('c0', { kind: 'primary', slot: 0, epoch: 2 })
    const summoned = { ...called, stage: { ...stageOf(called), promoting: true } }
    const next = { ...lease, holder: { name: 'c0', uid: called.uid }, epoch: 2, node: 'n-c0' }
    const s = makeMemorySnapshot({ ...wish, coldBackups: 0 }, [p0, summoned], [makeSlot(next, [elsewhere])])
    expect(actions(s)).toMatchObject([
      { type: 'promote', wake: true, version: undefined, lease: { ...next, kept: expect.anything() } },
    ])
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
