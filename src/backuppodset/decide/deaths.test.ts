import { describe, expect, it } from 'vitest'
import { makeCopy, makeLease, makeSlot } from '../../slot/testing/slots.ts'
import { actions, ofType, plan } from '../testing/decided.ts'
import { makeMemorySnapshot, makePrimary, makeUnderstudy } from '../testing/memory.ts'

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
      { type: 'promote', pod: { name: 'h0' }, role: { replaces: { name: 'p0', reason: 'Ended' } } },
    ])
  })

  it('MP-29: has not ended by itself if its agent has ended it', () => {
    const slot = makeSlot(lease, [makeCopy(lease, h0, 'Frozen')])
    const reasonOf = (over: object) => {
      const dead = makePrimary('p0', 0, { ready: false }, { died: true, ...over })
      const [promotion] = ofType(makeMemorySnapshot(wish, [dead, h0], [slot]), 'promote')
      return promotion?.role.replaces?.reason
    }
    expect(reasonOf({})).toBe('Died')
    expect(reasonOf({ ended: true })).toBe('Ended')
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
