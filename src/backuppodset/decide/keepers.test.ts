import { describe, expect, it } from 'vitest'
import { makeCopy, makeLease, makeSlot } from '../../slot/testing/slots.ts'
import { dead, died, ofType } from '../testing/decided.ts'
import { makeMemorySnapshot, makePrimary, makeUnderstudy } from '../testing/memory.ts'

/** The holder reports the first copy; the node of the primary, which has saved it, could report nothing. */
describe('D7.kept: the Lease of a slot without a primary names who may keep its memory, whatever else is written', () => {
  const p0 = makePrimary('p0', 0, dead, died)
  const h0 = makeUnderstudy('h0')
  const lease = { ...makeLease(p0, { holders: ['n-h0'] }), kept: [] }
  const copy = makeCopy(lease, h0, 'Frozen', { epoch: 1, generation: 1 })
  const unasked = [{ node: 'n-p0', why: 'its agent is silent' }]
  const slot = makeSlot(lease, [copy], { vacantSince: 0, unasked })
  const wish = { replicas: 1, hotBackups: 1 }
  const both = ['n-h0', 'n-p0']

  it('when a successor is called at once', () => {
    const s = makeMemorySnapshot(wish, [p0, h0], [slot], { monotonicNow: 1 })
    expect(ofType(s, 'promote').map(({ lease: next }) => next.kept)).toEqual([both])
  })

  it('while its primary is still to be stopped, although a backup could be called then', () => {
    const waiting = { ...slot, holderGoesBy: 30_000 }
    const s = makeMemorySnapshot(wish, [h0], [waiting], { monotonicNow: 1 })
    expect(ofType(s, 'promote')).toEqual([])
    expect(ofType(s, 'writeSlot').map(({ lease: next }) => next)).toEqual([{ ...lease, kept: both }])
    const named = makeSlot({ ...lease, kept: both }, [copy], {
      vacantSince: 0,
      unasked,
      holderGoesBy: 30_000,
    })
    expect(ofType(makeMemorySnapshot(wish, [h0], [named], { monotonicNow: 1 }), 'writeSlot')).toEqual([])
  })

  it('when the set has no place for it any more, and when it is suspended', () => {
    const keptIn = (over: object) => {
      const s = makeMemorySnapshot({ ...wish, ...over }, [], [slot], { monotonicNow: 1 })
      return ofType(s, 'writeSlot').map(({ lease: next }) => [next.retainedSince !== undefined, next.kept])
    }
    expect(keptIn({ replicas: 0 })).toEqual([[true, both]])
    expect(keptIn({ suspended: true })).toEqual([[true, both]])
  })

  it('also if its primary still counts as running', () => {
    const running = makePrimary('p0', 0)
    const kept = makeSlot(lease, [copy], { sourceKeeps: true })
    const settled = makeMemorySnapshot(wish, [running, h0], [kept], { monotonicNow: 1 })
    expect(ofType(settled, 'writeSlot').map(({ lease: next }) => next.kept)).toEqual([both])
    const smaller = makeMemorySnapshot({ ...wish, replicas: 0 }, [running, h0], [kept], { monotonicNow: 1 })
    expect(ofType(smaller, 'writeSlot').map(({ lease: next }) => next.kept)).toEqual([both])
  })

  it('and of a retained slot, when that becomes known later', () => {
    const retained = { ...lease, retainedSince: '2030-01-01T00:00:00Z' }
    const late = makeSlot(retained, [copy], { sourceKeeps: true, retainedSeenAt: 0 })
    const s = makeMemorySnapshot({ ...wish, replicas: 0 }, [], [late], { monotonicNow: 1 })
    expect(ofType(s, 'writeSlot').map(({ lease: next }) => next)).toEqual([{ ...retained, kept: both }])
  })

  it('but not who is only guessed to have some', () => {
    const guess = makeSlot(lease, [copy], {
      vacantSince: 0,
      unasked: [{ node: 'n-p0', why: '', isGuess: true }],
    })
    const s = makeMemorySnapshot(wish, [p0, h0], [guess], { monotonicNow: 1 })
    expect(ofType(s, 'promote').map(({ lease: next }) => next.kept)).toEqual([['n-h0']])
  })
})
