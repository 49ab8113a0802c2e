// Long because it is a list of situations for one pure function.
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { seededRandom } from '../../kube/random.ts'
import type { SlotMemory } from '../../slot/decide/memory-view.ts'
import { makeCopy, makeLease, makeSlot } from '../../slot/testing/slots.ts'
import type { PodView, Snapshot } from '../snapshot.ts'
import { actions, ofType, plan } from '../testing/decided.ts'
import { coldCopy, makeMemorySnapshot, makePrimary, makeUnderstudy, parsedMemory } from '../testing/memory.ts'
import { played } from '../testing/played.ts'
import { actionsOf, makePod, makeSnapshot } from '../testing/snapshots.ts'
import { decide } from './decide.ts'
import { msRetained } from './retention.ts'

const p0 = makePrimary('p0', 0)
const p1 = makePrimary('p1', 1)
const h0 = makeUnderstudy('h0')
const heir = { name: 'h0', uid: h0.uid, ip: '10.0.0.1' }
const lease0 = makeLease(p0, { holders: ['n-h0'], heir })
const lease1 = makeLease(p1, { holders: ['n-h0'] })
const slot0 = makeSlot(lease0, [makeCopy(lease0, h0, 'Frozen')])
const slot1 = makeSlot(lease1, [makeCopy(lease1, h0, 'Staged')])
const since = '1970-01-01T00:16:40.000Z' // makeSnapshot's now
const marked = makeSlot({ ...lease0, heir: undefined, retainedSince: since }, slot0.copies)
const costs = (deletionCost: number) => ({ deletionCost })
const without = { memory: { ...parsedMemory, retainMs: 0 } }
const smaller = { replicas: 1, hotBackups: 1 }
const larger = { replicas: 2, hotBackups: 1 }

describe('a set with memory that is made smaller', () => {
  const cheap = { ...p0, deletionCost: -5 }
  const s = makeMemorySnapshot(smaller, [cheap, p1, h0], [slot0, slot1])

  it('marks the Lease of whom it takes away, before it takes it away, and says whose memory that is', () => {
    const { tiers } = plan(s)
    expect(tiers.map(({ tier }) => tier).slice(0, 2)).toEqual(['assignments', 'primaries'])
    expect(tiers[0]?.aside).toBeUndefined()
    const { heir: _, ...kept } = slot0.lease
    expect(tiers[0]?.actions).toMatchObject([
      { type: 'writeSlot', lease: { ...kept, heir: undefined, retainedSince: since }, version: '1' },
    ])
    const [mark] = ofType(s, 'writeSlot')
    expect(mark?.retention).toMatchObject({ type: 'begins' })
    expect(mark?.retention?.note).toMatch(/slot 0 \(p0\).*generation 3.*n-h0 until 1970-01-01T00:26:40/)
    expect(ofType(s, 'delete')).toMatchObject([{ pod: { name: 'p0' }, reason: 'Surplus' }])
  })

  it('revokes the grant of whom it takes away: the heir could be called to no other slot until that is over', () => {
    const grant = { number: 2, heir: { uid: h0.uid, node: 'n-h0' }, isRevoked: false }
    const granted = { ...slot0, lease: { ...slot0.lease, grant } }
    const [write] = ofType(makeMemorySnapshot(smaller, [cheap, p1, h0], [granted, slot1]), 'writeSlot')
    expect(write?.lease).toMatchObject({ retainedSince: since, grant: { ...grant, isRevoked: true } })
  })

  it('takes away whom it has marked, if its pass ended between the two', () => {
    for (let seed = 0; seed < 10; seed += 1) {
      const between = makeMemorySnapshot(smaller, [{ ...p0, deletionCost: 9 }, p1, h0], [marked, slot1])
      const all = actionsOf(decide(between, seededRandom(seed)))
      expect(all.filter(({ type }) => type === 'delete')).toMatchObject([{ pod: { name: 'p0' } }])
    }
  })

  it('keeps whom it has marked, with its mark taken back, if it is made larger between the two', () => {
    const again = makeMemorySnapshot(larger, [p0, p1, h0], [marked, slot1])
    expect(ofType(again, 'delete')).toEqual([])
    const written = ofType(again, 'writeSlot').find(({ lease }) => lease.slot === 0)
    expect(written?.lease.incarnation).toBe(lease0.incarnation)
    expect(written?.lease).not.toHaveProperty('retainedSince')
  })

  it('keeps the memory of a primary that was gone already', () => {
    const gone = makeMemorySnapshot({ replicas: 0, hotBackups: 1 }, [h0], [slot0])
    expect(actions(gone)).toMatchObject([{ type: 'writeSlot', lease: { slot: 0, retainedSince: since } }])
  })

  it.each([
    ['with checkpoint.retain: 0s', { ...smaller, ...without }, slot0, 'Warning', /deleted/],
    ['where nobody has any', smaller, makeSlot({ ...lease0, kept: [] }, []), 'Normal', /no node has/],
  ])('forgets it %s, and says so', (_, wish, slot, type, note) => {
    const before = makeMemorySnapshot(wish, [cheap, p1, h0], [slot, slot1])
    expect(ofType(before, 'writeSlot').filter(({ lease }) => lease.slot === 0)).toEqual([])
    expect(ofType(before, 'delete')).toHaveLength(1)
    const after = makeMemorySnapshot(wish, [p1, h0], [slot, slot1])
    expect(ofType(after, 'deleteSlot')).toMatchObject([{ slot: 0, told: { type } }])
    expect(ofType(after, 'deleteSlot')[0]?.told?.note).toMatch(note)
  })
})

describe('D7.called-off: a pod that is called and not on stage yet', () => {
  const p2 = makePrimary('p2', 2)
  const lease2 = makeLease(p2, { holders: ['n-h0'] })
  const slot2 = makeSlot(lease2, [makeCopy(lease2, h0, 'Staged')])
  /** A pod that is called to the slot of `p0`, which is gone. */
  const called = (over = {}) =>
    makeUnderstudy('h1', { kind: 'primary', slot: 0, epoch: 2, ready: false, waking: true, ...over }, on)
  const on = { promoting: true }
  const won = makeLease(called(), { holders: ['n-h0'] })
  const slot = makeSlot(won, [makeCopy(won, h0, 'Staged')])
  const at = (wish: object, pods: readonly PodView[], given: SlotMemory = slot) =>
    makeMemorySnapshot(wish, [...pods, h0], [given, slot1, slot2])
  const two = { replicas: 2, hotBackups: 1 }
  const three = { replicas: 3, hotBackups: 1 }
  const off = makeSlot({ ...won, retainedSince: since }, slot.copies)
  const seeds = Array.from({ length: 10 }, (_, seed) => seed)

  it('gives way to slots that are served, whatever these cost', () => {
    const cheap = [p1, p2].map(pod => ({ ...pod, deletionCost: -9 }))
    for (const seed of seeds) {
      const all = actionsOf(decide(at(two, [called(), ...cheap]), seededRandom(seed)))
      const [mark, ...others] = all.filter(({ type }) => type === 'writeSlot')
      expect(mark).toMatchObject({ lease: { slot: 0, retainedSince: since }, retention: { type: 'begins' } })
      expect(others).not.toContainEqual(expect.objectContaining({ retention: expect.anything() }))
      // The promotion is left alone until it has ended.
      expect(all.filter(({ type }) => type === 'delete' || type === 'promote')).toEqual([])
    }
  })

  it('with checkpoint.retain: 0s is called off, too, and nothing is said of memory that is kept', () => {
    const [mark] = ofType(at({ ...two, ...without }, [called(), p1, p2]), 'writeSlot')
    expect(mark).toMatchObject({ lease: { slot: 0, retainedSince: since } })
    expect(mark).not.toHaveProperty('retention')
  })

  it('is the one that goes, once it is marked, also beside another one that is called', () => {
    const other = makeUnderstudy('h2', { kind: 'primary', slot: 1, epoch: 2, ready: false, waking: true }, on)
    const next = makeLease(other, { holders: ['n-h0'] })
    for (const seed of seeds) {
      const slots = [off, makeSlot(next, [makeCopy(next, h0, 'Staged')]), slot2]
      const s = makeMemorySnapshot(two, [called(), other, p2, h0], slots)
      const all = actionsOf(decide(s, seededRandom(seed)))
      expect(all.filter(action => action.type === 'writeSlot' && action.retention !== undefined)).toEqual([])
    }
    // The pod came on stage all the same.
    const there = called({ ready: true, waking: false })
    const arrived = { ...there, stage: makePrimary('x', 0, {}, { understudy: true, serving: true }).stage }
    const s = at(two, [arrived as PodView, p1, p2], off)
    expect(ofType(s, 'delete')).toMatchObject([{ pod: { name: 'h1' }, reason: 'Surplus' }])
  })

  it('is not called again by who leads next', () => {
    const s = at(two, [called({ waking: false }), p1, p2], off)
    expect(ofType(s, 'promote')).toEqual([])
    expect(ofType(s, 'delete')).toMatchObject([{ pod: { name: 'h1' }, reason: 'Surplus' }])
  })

  it('does not keep a primary that fails from being replaced until its promotion has ended', () => {
    const lost = makePrimary('p1', 1, { ready: false }, { died: true })
    for (const seed of seeds) {
      const all = actionsOf(decide(at(two, [called(), lost, p2], off), seededRandom(seed)))
      expect(all).toContainEqual(expect.objectContaining({ type: 'promote', pod: h0 }))
      expect(all.filter(({ type }) => type === 'delete')).toEqual([])
    }
  })

  it('takes no place of a slot that loses its primary either', () => {
    const s = at(two, [called(), p2], off)
    expect(ofType(s, 'promote')).toMatchObject([{ pod: { name: 'h0' }, role: { slot: 1 } }])
    expect(ofType(s, 'writeSlot').filter(({ retention }) => retention !== undefined)).toEqual([])
  })

  it('goes before one that is marked and serves, if the set has become larger since', () => {
    const serving = makeSlot({ ...lease2, retainedSince: since }, slot2.copies)
    for (const seed of seeds) {
      const s = makeMemorySnapshot(two, [called(), p2, h0], [off, slot1, serving])
      expect(actionsOf(decide(s, seededRandom(seed))).filter(({ type }) => type === 'delete')).toEqual([])
    }
  })

  it('goes on as soon as there is a place for its slot again', () => {
    const [back, ...more] = ofType(at(three, [called(), p1, p2], off), 'writeSlot').filter(
      ({ lease }) => lease.slot === 0,
    )
    expect(more).toEqual([])
    expect(back?.retention).toMatchObject({ type: 'ends' })
    expect(back?.lease).not.toHaveProperty('retainedSince')
    expect(back?.lease.holder).toEqual(won.holder)
  })
})

describe('a slot that the set has no place for', () => {
  const at = (now: number, monotonicNow: number, seenAt: number | undefined, wish: object = smaller) =>
    makeMemorySnapshot(
      wish,
      [p1, h0],
      [{ ...marked, retainedSeenAt: seenAt }, makeSlot({ ...lease1, heir }, slot1.copies)],
      { now: Date.parse(since) + now, monotonicNow },
    )

  it('is left alone until its time is over, and then forgotten', () => {
    expect(plan(at(0, 1_000, 1_000))).toMatchObject({ requeueAfterMs: 600_000 })
    expect(ofType(at(599_000, 600_000, 1_000), 'deleteSlot')).toEqual([])
    expect(plan(at(599_000, 600_000, 1_000)).requeueAfterMs).toBe(1_000)
    expect(ofType(at(600_000, 601_000, 1_000), 'deleteSlot')).toMatchObject([
      { slot: 0, told: { type: 'Normal' } },
    ])
  })

  it('counts by the clock of the process; a wall clock that jumps ends nothing, and keeps nothing for ever', () => {
    const [hour, day] = [3_600_000, 86_400_000]
    const left = (now: number, seenMs: number, retainMs = 600_000) =>
      msRetained(at(now, 1_000 + seenMs, 1_000, { ...smaller, memory: { ...parsedMemory, retainMs } }), {
        ...marked,
        retainedSeenAt: 1_000,
      })
    // The wall clock jumps ahead by a day, then behind by a day.
    expect(left(day, 0)).toBe(600_000)
    expect(left(-day, 500_000)).toBe(100_000)
    // A leader that came late, with a longer time to keep, trusts the wall clock after ten minutes of its own.
    expect(left(5 * hour, 0, hour)).toBe(600_000)
    expect(left(5 * hour, 600_000, hour)).toBe(0)
    expect(left(0, 600_000, hour)).toBe(3_000_000)
  })

  it('is nobody’s to save, to roll or to wait for, and its number is no other’s', () => {
    const s = at(1_000, 2_000, 1_000, { replicas: 1, hotBackups: 1 })
    expect(actions(s)).toEqual([])
    const free = makeMemorySnapshot({ replicas: 3, hotBackups: 1 }, [p1, h0], [marked, slot1])
    const fresh = ofType(free, 'create').flatMap(({ role }) => role?.slot ?? [])
    expect(fresh).toEqual([2])
  })

  it('comes back when there is a place for it: first the mark goes, then it is a slot like any other', () => {
    const s = at(1_000, 2_000, 1_000, larger)
    expect(ofType(s, 'create').filter(({ kind }) => kind === 'primary')).toEqual([])
    const [first] = ofType(s, 'writeSlot')
    expect(first).toMatchObject({
      lease: { slot: 0, incarnation: lease0.incarnation },
      retention: { type: 'ends' },
    })
    expect(first?.lease).not.toHaveProperty('retainedSince')
    const next = makeMemorySnapshot(larger, [p1, h0], [makeSlot(first?.lease ?? lease0, slot0.copies), slot1])
    expect(ofType(next, 'promote')).toMatchObject([
      { pod: { name: 'h0' }, role: { slot: 0, epoch: 2 }, lease: { incarnation: lease0.incarnation } },
    ])
  })

  it('comes after those that only lost their primary', () => {
    const s = makeMemorySnapshot(smaller, [h0], [marked, slot1])
    expect(ofType(s, 'promote')).toMatchObject([{ role: { slot: 1 } }])
    expect(ofType(s, 'writeSlot')).toEqual([])
  })

  it('D6.errand: leaves what was made for it to other slots', () => {
    const dead = makePrimary('p1', 1, { ready: false }, { died: true })
    const made = makeUnderstudy('h0', {}, { successorOf: 0 })
    const called = (...slots: readonly SlotMemory[]) =>
      ofType(makeMemorySnapshot(smaller, [dead, made], slots), 'promote').map(({ role }) => role.slot)
    expect(called(marked, slot1)).toEqual([1])
    // The slot's Lease has been deleted.
    expect(called(slot1)).toEqual([1])
  })

  it('is forgotten once all who kept its memory say that they have none', () => {
    const none = makeSlot({ ...marked.lease, kept: [] }, [])
    const s = makeMemorySnapshot(larger, [p1, h0], [none, slot1])
    expect(ofType(s, 'deleteSlot')).toMatchObject([{ slot: 0 }])
    expect(ofType(s, 'writeSlot').map(({ lease }) => lease.slot)).toEqual([1])
  })
})

it('whatever it is scaled to and back in time, every slot that comes back goes on in the same life, and none is forgotten', () => {
  fc.assert(
    fc.property(fc.array(fc.nat(4), { minLength: 1, maxLength: 6 }), fc.nat(), (walk, seed) => {
      const draws = seededRandom(seed)
      const spare = ['n-x', 'n-y']
      let s = makeMemorySnapshot({ replicas: 4, hotBackups: 1, coldBackups: 0 }, [], [], {}, spare)
      const settle = () => {
        for (let passes = 0; passes < 40; passes += 1) {
          const next = decide(s, draws)
          expect(actionsOf(next).filter(({ type }) => type === 'deleteSlot')).toEqual([])
          if (next.tiers.length === 0) return
          s = played(s, next, { comes: () => true })
          const slots = [...(s.memory?.slots.values() ?? [])].map(slot => ({
            ...slot,
            // Nodes without pods keep their copies.
            copies:
              slot.copies.length > 0
                ? slot.copies
                : slot.lease.holders.map(node => coldCopy(slot.lease, node)),
          }))
          const pods = s.pods.map(pod => ({ ...pod, ready: true }))
          s = makeMemorySnapshot(
            s.set,
            pods,
            slots,
            { retired: s.retired ?? [], monotonicNow: s.monotonicNow },
            spare,
          )
        }
        throw new Error('does not come to rest')
      }
      const lives = () =>
        new Map([...(s.memory?.slots ?? [])].map(([slot, { lease }]) => [slot, lease.incarnation]))
      settle()
      const born = lives()
      for (const replicas of [...walk, 4]) {
        s = { ...s, set: { ...s.set, replicas } }
        settle()
        expect(s.pods.filter(({ kind }) => kind === 'primary')).toHaveLength(replicas)
        expect(lives()).toEqual(born)
      }
    }),
    { numRuns: 50 },
  )
})

describe('pod-deletion-cost', () => {
  const names = (pods: Snapshot['pods'], wish: object, seed: number) =>
    actionsOf(
      decide(makeSnapshot({ replicas: 1, hotBackups: 0, coldBackups: 0, ...wish }, pods), seededRandom(seed)),
    )
      .flatMap(action => (action.type === 'delete' ? [action.pod.name] : []))
      .sort()
  const primary = (name: string, slot: number, over = {}) =>
    makePod(name, 'primary', { slot, epoch: 1, ...over })

  it('of primaries of a set without memory the cheapest go first, then as the strategy says', () => {
    const pods = [
      primary('a', 0, costs(10)),
      primary('b', 1, costs(-10)),
      primary('c', 2),
      primary('d', 3, { createdAt: 5 }),
    ]
    const strategy = { ...makeSnapshot({}, []).set.strategy, replicasToUnallocated: 'newest' as const }
    for (let seed = 0; seed < 10; seed += 1) {
      expect(names(pods, {}, seed)).toEqual(['b', 'c', 'd'])
      expect(names(pods, { replicas: 3 }, seed)).toEqual(['b'])
      expect(names(pods, { replicas: 2, strategy }, seed)).toContain('b')
    }
  })

  it('so do hot backups and cold ones; one that is not ready goes before all, as with a ReplicaSet', () => {
    for (const kind of ['hotbackup', 'coldbackup'] as const) {
      const pods = [
        primary('p', 0),
        makePod('a', kind, costs(2)),
        makePod('b', kind, costs(1)),
        makePod('c', kind, costs(3)),
      ]
      const wish = kind === 'hotbackup' ? { hotBackups: 2 } : { coldBackups: 2 }
      expect(names(pods, wish, 3)).toEqual(['b'])
    }
    const pods = [primary('a', 0, costs(-9)), primary('b', 1, { ...costs(9), ready: false, unreadySince: 0 })]
    expect(names(pods, {}, 1)).toEqual(['b'])
  })
})
