import { describe, expect, test } from 'vitest'
import { createElector, GiveBack, LeadershipLost } from './election.ts'
import { silentLog } from './log.ts'
import { seededRandom } from './random.ts'
import { mustStopNow } from './stop.ts'
import { makeCandidates } from './testing/candidates.ts'

describe('election', () => {
  test('a lone candidate makes the lease and leads', async () => {
    const { clock, leases, join } = makeCandidates()
    const a = join('a')
    await clock.advance(0)
    expect(a.elector.isLeader()).toBe(true)
    expect(a.status).toEqual([false, true])
    const spec = leases.get()?.spec
    expect(spec).toMatchObject({ holderIdentity: 'a', leaseDurationSeconds: 2, leaseTransitions: 0 })
    expect(spec?.renewTime).toBe('2030-01-01T00:00:00.000000Z')
    await clock.advance(60_000)
    expect(a.terms).toHaveLength(1)
    expect(leases.get()?.spec?.acquireTime).toBe(spec?.acquireTime)
    expect(leases.get()?.spec?.renewTime).toBe('2030-01-01T00:01:00.000000Z')
  })

  test('after a crash the standby leads within 3 s, and never while the dead one might', async () => {
    // Tries every phase of the renewal period, to include the worst one.
    for (let phase = 0; phase < 300; phase += 25) {
      const { clock, leases, join } = makeCandidates()
      const a = join('a')
      await clock.advance(0)
      const b = join('b')
      await clock.advance(3000 + phase)
      expect(b.elector.isLeader()).toBe(false)
      a.kill()
      const died = clock.monotonic()
      while (!b.elector.isLeader()) {
        await clock.advance(5)
        expect(a.elector.isLeader() && b.elector.isLeader()).toBe(false)
        expect(clock.monotonic() - died).toBeLessThan(3000)
      }
      expect(a.terms[0]?.stop.aborted).toBe(true)
      expect(leases.get()?.spec).toMatchObject({ holderIdentity: 'b', leaseTransitions: 1 })
    }
  })

  test('told to end, it releases the lease, and the standby follows within a retry period', async () => {
    const { clock, leases, join } = makeCandidates()
    const a = join('a')
    await clock.advance(0)
    const b = join('b')
    await clock.advance(1000)
    a.end.abort()
    await a.run
    expect(a.elector.isLeader()).toBe(false)
    expect(a.stopped()).toBe(1)
    expect(leases.get()?.spec?.holderIdentity).toBe('')
    await clock.advance(360)
    expect(b.elector.isLeader()).toBe(true)
    expect(leases.get()?.spec).toMatchObject({ holderIdentity: 'b', leaseTransitions: 1 })
  })

  test('while the work finishes the lease is renewed, so nobody else starts', async () => {
    const { clock, leases, join } = makeCandidates()
    const finishing = Promise.withResolvers<void>()
    const end = new AbortController()
    const elector = createElector({
      api: leases.client(),
      namespace: 'ns',
      name: 'x',
      identity: 'a',
      clock,
      random: seededRandom(9),
      log: silentLog,
    })
    const run = elector.run({ onStarted: () => finishing.promise, signal: end.signal })
    await clock.advance(0)
    const b = join('b')
    end.abort()
    await clock.advance(10_000)
    expect(elector.isLeader()).toBe(true)
    expect(b.elector.isLeader()).toBe(false)
    finishing.resolve()
    await run
    await clock.advance(360)
    expect(b.elector.isLeader()).toBe(true)
  })

  test('leadership lost during that time still reaches the work', async () => {
    const { clock, join } = makeCandidates()
    const a = join('a')
    const finishing = Promise.withResolvers<void>()
    const signals: AbortSignal[] = []
    a.work.mockImplementation((stop, lost) => {
      signals.push(stop, lost)
      return finishing.promise
    })
    await clock.advance(0)
    a.end.abort()
    a.kill()
    await clock.advance(2000)
    const [stop, lost] = signals
    expect(mustStopNow(stop?.reason)).toBe(false)
    expect(lost?.reason).toBeInstanceOf(LeadershipLost)
    finishing.resolve()
    await a.run
  })

  test('work that cannot begin gives the term back: another one leads, and this one only after it', async () => {
    const { clock, leases, join } = makeCandidates()
    const elector = createElector({
      ...{ api: leases.client(), namespace: 'ns', name: 'x', identity: 'a', clock },
      random: seededRandom(9),
      log: silentLog,
    })
    const end = new AbortController()
    let terms = 0
    const onStarted = async () => {
      terms += 1
      throw new GiveBack('the caches are old')
    }
    const run = elector.run({ onStarted, signal: end.signal })
    await clock.advance(0)
    const b = join('b')
    await clock.advance(400)
    expect([terms, elector.isLeader(), b.elector.isLeader()]).toEqual([1, false, true])
    b.end.abort()
    await clock.advance(5000)
    expect(terms).toBeGreaterThan(1)
    end.abort()
    await clock.advance(2000)
    await run
  })

  test('the end that comes in the middle of the campaign leaves no lease behind', async () => {
    const { clock, leases, join } = makeCandidates()
    const a = join('a')
    a.faults.reply = verb => (verb === 'create' ? clock.sleep(100) : undefined)
    await clock.advance(50)
    a.end.abort()
    await clock.advance(100)
    await a.run
    expect(a.work).not.toHaveBeenCalled()
    expect(leases.get()?.spec?.holderIdentity).toBe('')
  })

  test('work that ends or fails by itself ends the election, and the lease is free', async () => {
    for (const [outcome, expected] of [
      [() => Promise.resolve(), 'resolved'],
      [() => Promise.reject(new Error('cannot work')), 'Error: cannot work'],
    ] as const) {
      const { clock, leases, join } = makeCandidates()
      const a = join('a')
      a.work.mockImplementation(outcome)
      await clock.advance(0)
      expect(await a.run.then(() => 'resolved', String)).toBe(expected)
      expect(leases.get()?.spec?.holderIdentity).toBe('')
    }
  })

  test('times that cannot work are refused', () => {
    const { join } = makeCandidates()
    expect(() => join('a', { leaseDurationMs: 1000 })).toThrow(RangeError)
    expect(() => join('a', { retryPeriodMs: 700 })).toThrow(RangeError)
    expect(() => join('')).toThrow(RangeError)
  })
})
