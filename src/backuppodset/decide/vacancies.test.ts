import { describe, expect, it } from 'vitest'
import { makeCopy, makeLease, makeSlot } from '../../slot/testing/slots.ts'
import { actions, ofType, plan } from '../testing/decided.ts'
import { makeMemorySnapshot, makePrimary, makeUnderstudy } from '../testing/memory.ts'

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
