import { describe, expect, it } from 'vitest'
import type { SlotMemory, StageView } from '../../slot/decide/memory-view.ts'
import { makeCopy, makeLease, makeSlot } from '../../slot/testing/slots.ts'
import type { PodView, Snapshot } from '../snapshot.ts'
import { actions, dead, died, ofType, plan } from '../testing/decided.ts'
import { coldCopy, makeMemorySnapshot, makePrimary, makeUnderstudy } from '../testing/memory.ts'

describe('a slot that no backup can take', () => {
  const p0 = makePrimary('p0', 0, dead, died)
  const lease = makeLease(p0, { holders: ['n-c0', 'n-x'] })
  const here = coldCopy(lease, 'n-c0')
  const elsewhere = coldCopy(lease, 'n-x')
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

  it('D16.last-save: has it named as its heir once it runs, while the primary that is being deleted serves on', () => {
    const going = { holderGoesBy: 31_000 }
    const at = (on: Partial<StageView>, over: Partial<SlotMemory> = going) =>
      actions(
        makeMemorySnapshot(none, [made({}, on)], [makeSlot(lease, [here, elsewhere], over)], {
          monotonicNow: 1_000,
        }),
      )
    const heir = { name: 'r', uid: made().uid, ip: '10.0.0.9' }
    const runs = { containers: 'app=containerd://r', ip: heir.ip }
    expect(at(runs)).toMatchObject([
      { type: 'writeSlot', lease: { heir, holders: ['n-r', 'n-c0', 'n-x'], holder: lease.holder } },
    ])
    // Its node gets the memory before the other holders.
    const kept = makeSlot({ ...lease, holders: ['n-c0', 'n-x', 'n-r'] }, [here, elsewhere], going)
    expect(
      actions(makeMemorySnapshot(none, [made({}, runs)], [kept], { monotonicNow: 1_000 })),
    ).toMatchObject([{ type: 'writeSlot', lease: { heir, holders: ['n-r', 'n-c0', 'n-x'] } }])
    // A pod that does not run could not take over.
    expect(at({ containers: undefined, ip: heir.ip })).toMatchObject([
      { type: 'writeSlot', lease: { heir: lease.heir, holders: ['n-r', 'n-c0', 'n-x'] } },
    ])
    const named = makeSlot({ ...lease, heir, holders: ['n-r', 'n-c0', 'n-x'] }, [here, elsewhere], going)
    expect(actions(makeMemorySnapshot(none, [made({}, runs)], [named], { monotonicNow: 1_000 }))).toEqual([])
    // The primary is dead: the pod is called.
    expect(at(runs, {}).map(({ type }) => type)).toContain('promote')
  })

  it('of a MigratingPod has it made elsewhere, if another node takes it', () => {
    const slot = makeSlot(lease, [here, elsewhere])
    const set = { ...none, isNumbered: true } as const
    const [create] = ofType(makeMemorySnapshot(set, [p0], [slot]), 'create')
    expect(create?.successorOf).toMatchObject({ slot: 0, avoid: [p0.node] })
    expect(create?.successorOf?.near).not.toContain(p0.node)
    expect(create?.successorOf?.notOn).toBeUndefined()
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
