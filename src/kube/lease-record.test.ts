import { describe, expect, test } from 'vitest'
import { LeadershipLost } from './election.ts'
import { KubeError } from './errors.ts'
import { makeCandidates } from './testing/candidates.ts'

describe('a lease that others write, too', () => {
  test('a foreign holder is waited for as long as ITS record promises, without a look at any clock', async () => {
    const { clock, leases, join } = makeCandidates()
    // Renewed "an hour ago" by a clock that is an hour behind, or by a holder that died: only a change of the record
    // tells.
    leases.set({
      holderIdentity: 'other',
      leaseDurationSeconds: 15,
      renewTime: '2029-12-31T23:00:00.000000Z',
      leaseTransitions: 4,
    })
    const a = join('a')
    await clock.advance(14_990)
    expect(a.elector.isLeader()).toBe(false)
    expect(a.elector.leader()).toBe('other')
    await clock.advance(20)
    expect(a.elector.isLeader()).toBe(true)
    expect(leases.get()?.spec).toMatchObject({ holderIdentity: 'a', leaseTransitions: 5 })
  })

  test('a foreign holder without a duration gets ours', async () => {
    const { clock, leases, join } = makeCandidates()
    leases.set({ holderIdentity: 'other' })
    const a = join('a')
    await clock.advance(1990)
    expect(a.elector.isLeader()).toBe(false)
    await clock.advance(20)
    expect(a.elector.isLeader()).toBe(true)
  })

  test('somebody who labels the lease every second does not keep a dead leader alive', async () => {
    const { clock, leases, join } = makeCandidates()
    leases.set({ holderIdentity: 'other', leaseDurationSeconds: 2 })
    const a = join('a')
    for (let n = 0; n < 5; n++) {
      leases.edit(lease => ({ ...lease, metadata: { ...lease.metadata, labels: { n: String(n) } } }))
      await clock.advance(600)
    }
    expect(a.elector.isLeader()).toBe(true)
    expect(leases.get()?.metadata.labels).toEqual({ n: '4' })
  })

  test('a deleted lease is made again and leadership goes on', async () => {
    const { clock, leases, join } = makeCandidates()
    const a = join('a')
    await clock.advance(100)
    leases.remove()
    await clock.advance(5000)
    expect(a.terms).toHaveLength(1)
    expect(a.terms[0]?.stop.aborted).toBe(false)
    expect(leases.get()?.spec?.holderIdentity).toBe('a')
  })

  test('a lease taken by hand ends the term at the next renewal; the next one begins when it is free', async () => {
    const { clock, leases, join } = makeCandidates()
    const a = join('a')
    await clock.advance(100)
    leases.edit(lease => ({ ...lease, spec: { ...lease.spec, holderIdentity: 'admin' } }))
    await clock.advance(300)
    expect(a.elector.isLeader()).toBe(false)
    expect(a.terms[0]?.stop.reason).toBeInstanceOf(LeadershipLost)
    expect(String(a.terms[0]?.lost.reason)).toContain('held by admin')
    leases.edit(lease => ({ ...lease, spec: { ...lease.spec, holderIdentity: '' } }))
    await clock.advance(400)
    expect(a.elector.isLeader()).toBe(true)
    expect(a.terms).toHaveLength(2)
  })

  test('says of two terms whether anybody else has led between them', async () => {
    const { clock, join } = makeCandidates()
    const a = join('a')
    await clock.advance(300)
    const first = a.elector.reign()
    expect(first).toBeDefined()
    a.faults.send = () => {
      throw new KubeError('Unavailable', 'a blip')
    }
    await clock.advance(1500)
    expect(a.elector.isLeader()).toBe(false)
    delete a.faults.send
    await clock.advance(400)
    expect([a.elector.isLeader(), a.elector.reign()]).toEqual([true, first])
    const b = join('b')
    await clock.advance(100)
    a.end.abort()
    await clock.advance(500)
    expect(b.elector.isLeader()).toBe(true)
    expect(b.elector.reign()).not.toBe(first)
  })
})
