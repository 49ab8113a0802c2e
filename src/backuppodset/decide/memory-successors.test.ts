import { describe, expect, it } from 'vitest'
import type { Copy, SlotMemory } from '../../slot/decide/memory-view.ts'
import { makeCopy, makeLease, makeSlot } from '../../slot/testing/slots.ts'
import type { Snapshot } from '../snapshot.ts'
import { dead, died, ofType, plan } from '../testing/decided.ts'
import { coldCopy, makeMemorySnapshot, makePrimary, makeUnderstudy } from '../testing/memory.ts'

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

  const called = (
    copy: Copy,
    generation: number,
    monotonicNow = 9_000,
    said: Partial<Copy['report']> = {},
    others: readonly Copy[] = [],
  ) => {
    const saved = makeCopy(lease, h0, undefined, { role: 'source', epoch: 1, generation }).report
    const { usable: _, ...source } = saved
    const over = { vacantSince: 8_000, source: { ...source, ...said }, sourceSeenAt: 0 }
    const s = { ...world([copy, ...others], over), monotonicNow }
    return [ofType(s, 'promote').length, ofType(s, 'create').length, plan(s).requeueAfterMs]
  }

  it('is not called before the node of who has just died has said what it has', () => {
    const stuck = here({ reason: 'PeerUnreachable' })
    expect(called(stuck, 3)).toEqual([0, 0, 1_000])
    expect(called(here(), 3)[0]).toBe(1)
    expect(called(stuck, 3, 10_000)[0]).toBe(1)
    expect(called(stuck, 3, 9_000, { usable: 'Cold' })[0]).toBe(1)
    expect(called(stuck, 3, 9_000, { generation: 0 })[0]).toBe(1)
  })

  it.each([
    ['its agent was silent and could not say so', { ...here({ generation: 7 }), timely: false }],
    ['the last reports say that it is behind', here({ generation: 5 })],
  ])('is not called before that either if %s', (_, copy) => {
    expect(called(copy, 7)).toEqual([0, 0, 1_000])
    expect(called(copy, 7, 10_000)[0]).toBe(1)
    expect(called(copy, 7, 9_000, { usable: 'Cold' })[0]).toBe(1)
    // Generation 7 may be in transit.
    expect(called(here({ generation: 6 }), 7)[0]).toBe(1)
  })

  it('is called at once if its own node lacks nothing, whatever others lack', () => {
    const elsewhere = { ...far, report: { ...far.report, generation: 5 } }
    const whole = here({ generation: 7, usable: 'Frozen', understudyUid: h0.uid })
    expect(called(whole, 7, 9_000, {}, [elsewhere])[0]).toBe(1)
    expect(called({ ...whole, timely: false }, 7, 9_000, {}, [elsewhere])[0]).toBe(0)
    // It would have to fetch the memory, perhaps from there.
    expect(called({ ...whole, node: 'b' }, 7, 9_000, {}, [elsewhere])[0]).toBe(0)
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
    const told = (last: Copy, asked: object = { atLeast: least }, monotonicNow = 9_000) => {
      const slot = makeSlot({ ...called, ...asked }, [here(), last], {
        ...{ vacantSince: 8_000, calledSince: 8_000, comingSince: 8_000 },
      })
      const s = makeMemorySnapshot(wish, [comes], [slot], { monotonicNow })
      return ofType(s, 'writeSlot').map(({ lease: next }) => next.atLeast)
    }
    const next = { ...far, report: { ...far.report, generation: 4 } }
    expect(told(far)).toMatchObject([{ epoch: 1, generation: 57 }])
    // Generation 4 may be in transit.
    expect(told(next)).toEqual([])
    // No report was recent when the Lease was written.
    expect(told(far, {})).toMatchObject([{ epoch: 1, generation: 57 }])
    // After a long time without success, any memory will do.
    expect(told(far, {}, 128_000)).toEqual([])
  })
})
