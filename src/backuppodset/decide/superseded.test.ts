import { describe, expect, it } from 'vitest'
import { makeCopy, makeLease, makeSlot } from '../../slot/testing/slots.ts'
import { actions, dead, died, ofType, plan } from '../testing/decided.ts'
import { makeMemorySnapshot, makePrimary, makeUnderstudy } from '../testing/memory.ts'

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
