import fc from 'fast-check'
import { describe, expect, test, vi } from 'vitest'
import { createFakeClock } from './clock.ts'
import { createElector, type ElectorOptions, GiveBack, LeadershipLost } from './election.ts'
import { KubeError } from './errors.ts'
import { silentLog } from './log.ts'
import { seededRandom } from './random.ts'
import { mustStopNow } from './stop.ts'
import { createMemoryLeases, type Faults } from './testing/memory-leases.ts'

/** A request that never arrives, on a connection that never reports it. */
const deadLink = (): Faults => ({ send: () => new Promise<void>(() => {}) })

const setup = () => {
  const clock = createFakeClock()
  const leases = createMemoryLeases(clock)
  let seed = 0

  /** Starts a candidate; its work runs until the elector stops it. */
  const join = (identity: string, options: Partial<ElectorOptions> = {}) => {
    const faults: Faults = {}
    const end = new AbortController()
    const terms: { stop: AbortSignal; lost: AbortSignal }[] = []
    const status: boolean[] = []
    let stopped = 0
    const elector = createElector({
      api: leases.client(faults),
      namespace: 'ns',
      name: 'x',
      identity,
      clock,
      random: seededRandom(++seed),
      log: silentLog,
      metrics: { leading: (_, leading) => status.push(leading) },
      ...options,
    })
    const work = vi.fn(
      (stop: AbortSignal, lost: AbortSignal): Promise<void> =>
        new Promise(resolve => {
          terms.push({ stop, lost })
          stop.addEventListener('abort', () => resolve())
        }),
    )
    const run = elector.run({ onStarted: work, onStopped: () => void stopped++, signal: end.signal })
    run.catch(() => {})
    return {
      elector,
      faults,
      end,
      run,
      terms,
      work,
      status,
      stopped: () => stopped,
      /** SIGKILL: nothing more reaches the server, and nothing is released. */
      kill() {
        Object.assign(faults, deadLink())
      },
    }
  }
  return { clock, leases, join }
}

describe('election', () => {
  test('a lone candidate makes the lease and leads', async () => {
    const { clock, leases, join } = setup()
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
      const { clock, leases, join } = setup()
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
    const { clock, leases, join } = setup()
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
    const { clock, leases, join } = setup()
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
    const { clock, join } = setup()
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

  test('a foreign holder is waited for as long as ITS record promises, without a look at any clock', async () => {
    const { clock, leases, join } = setup()
    // Renewed "an hour ago" by a clock that is an hour behind, or by a holder that died: only a change of the record
    // tells.
    leases.set({
      holderIdentity: 'other',
      leaseDurationSeconds: 15,
      renewTime: '2029-12-31T23:00:00.000000Z' as never,
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
    const { clock, leases, join } = setup()
    leases.set({ holderIdentity: 'other' })
    const a = join('a')
    await clock.advance(1990)
    expect(a.elector.isLeader()).toBe(false)
    await clock.advance(20)
    expect(a.elector.isLeader()).toBe(true)
  })

  test('somebody who labels the lease every second does not keep a dead leader alive', async () => {
    const { clock, leases, join } = setup()
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
    const { clock, leases, join } = setup()
    const a = join('a')
    await clock.advance(100)
    leases.remove()
    await clock.advance(5000)
    expect(a.terms).toHaveLength(1)
    expect(a.terms[0]?.stop.aborted).toBe(false)
    expect(leases.get()?.spec?.holderIdentity).toBe('a')
  })

  test('a lease taken by hand ends the term at the next renewal; the next one begins when it is free', async () => {
    const { clock, leases, join } = setup()
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

  test('an outage shorter than the deadline costs nothing, a longer one ends the term before expiry', async () => {
    const { clock, leases, join } = setup()
    const a = join('a')
    await clock.advance(300)
    const fail = () => {
      throw new KubeError('Unavailable', 'etcd is gone')
    }
    a.faults.send = fail
    await clock.advance(900)
    delete a.faults.send
    await clock.advance(3000)
    expect(a.terms).toHaveLength(1)
    expect(a.elector.isLeader()).toBe(true)
    const last = Date.parse(leases.get()?.spec?.renewTime ?? '')
    a.faults.send = fail
    await clock.advance(last + 1300 - clock.now() - 1)
    expect(a.elector.isLeader()).toBe(true)
    await clock.advance(1)
    expect(a.elector.isLeader()).toBe(false)
    expect(a.terms[0]?.stop.reason).toBeInstanceOf(LeadershipLost)
    delete a.faults.send
    await clock.advance(360)
    expect(a.elector.isLeader()).toBe(true)
  })

  test('says of two terms whether anybody else has led between them', async () => {
    const { clock, join } = setup()
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

  test('one request lost on a dead connection does not end the term', async () => {
    const { clock, join } = setup()
    const a = join('a')
    await clock.advance(250)
    let lost = 0
    a.faults.send = () => (lost++ === 0 ? new Promise<void>(() => {}) : undefined)
    await clock.advance(5000)
    expect(lost).toBeGreaterThan(1)
    expect(a.terms).toHaveLength(1)
    expect(a.elector.isLeader()).toBe(true)
  })

  test('the second try of a renewal has time for a handshake and a slow disk', async () => {
    const { clock, join } = setup()
    const a = join('a')
    await clock.advance(250)
    let sent = 0
    a.faults.send = verb => {
      if (verb !== 'replace') return undefined
      sent += 1
      return sent === 1 ? new Promise<void>(() => {}) : clock.sleep(450)
    }
    await clock.advance(5000)
    expect(sent).toBeGreaterThan(2)
    expect(a.terms).toHaveLength(1)
    expect(a.elector.isLeader()).toBe(true)
  })

  test('a renewal that fails at once is tried again after the period, not in a loop', async () => {
    const { clock, join } = setup()
    const a = join('a')
    await clock.advance(250)
    let sent = 0
    a.faults.send = () => {
      sent += 1
      throw new KubeError('Unavailable', 'refused')
    }
    await clock.advance(1000)
    expect(sent).toBeLessThanOrEqual(4)
  })

  test('work that cannot begin gives the term back: another one leads, and this one only after it', async () => {
    const { clock, leases, join } = setup()
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

  test('a renewal whose answer is lost is found out by reading', async () => {
    const { clock, join } = setup()
    const a = join('a')
    await clock.advance(250)
    let lost = 0
    a.faults.reply = verb => {
      if (verb === 'replace' && lost++ === 0) throw new KubeError('Unavailable', 'reset', { ambiguous: true })
    }
    await clock.advance(5000)
    expect(lost).toBeGreaterThan(1)
    expect(a.terms).toHaveLength(1)
  })

  test('a slow answer extends the term from the sending of the request, not from its arrival', async () => {
    const { clock, join } = setup()
    const a = join('a')
    await clock.advance(0)
    // Sent at 300, answered at 750; every later request is lost.
    let renewals = 0
    a.faults.reply = () => clock.sleep(450)
    a.faults.send = verb => {
      if (verb !== 'replace') return undefined
      return renewals++ === 0 ? undefined : new Promise<void>(() => {})
    }
    await clock.advance(1599)
    expect(a.elector.isLeader()).toBe(true)
    await clock.advance(1)
    expect(a.elector.isLeader()).toBe(false)
  })

  test('a term that began with a slow answer began with its request', async () => {
    const { clock, join } = setup()
    const a = join('a')
    a.faults.reply = verb => (verb === 'create' ? clock.sleep(499) : undefined)
    await clock.advance(498)
    expect(a.elector.isLeader()).toBe(false)
    await clock.advance(1)
    expect(a.elector.isLeader()).toBe(true)
    a.kill()
    await clock.advance(800)
    expect(a.elector.isLeader()).toBe(true)
    await clock.advance(1)
    expect(a.elector.isLeader()).toBe(false)
  })

  test('a victory that is told after its term is none, even if the client ignores timeouts', async () => {
    const { clock, leases, join } = setup()
    const api = leases.client()
    let late = true
    const a = join('a', {
      api: {
        ...api,
        create: async (resource, body, options) => {
          const lease = await api.create(resource, body, options)
          if (late) await clock.sleep(1300)
          late = false
          return lease
        },
      },
    })
    await clock.advance(1300)
    expect(a.work).not.toHaveBeenCalled()
    await clock.advance(360)
    expect(a.elector.isLeader()).toBe(true)
  })

  test.each([
    ['forward', 3_600_000],
    ['back', -3_600_000],
  ])('a wall clock that jumps an hour %s changes nothing', async (_, ms) => {
    const { clock, leases, join } = setup()
    const a = join('a')
    await clock.advance(0)
    const b = join('b')
    await clock.advance(1000)
    clock.jump(ms)
    await clock.advance(10_000)
    expect(a.terms).toHaveLength(1)
    expect(b.terms).toHaveLength(0)
    a.kill()
    await clock.advance(3000)
    expect(b.elector.isLeader()).toBe(true)
    expect(leases.get()?.spec?.holderIdentity).toBe('b')
  })

  test('a wall clock that stands still still shows signs of life', async () => {
    const { clock, join } = setup()
    const stopped = { ...clock, now: () => 0 }
    const a = join('a', { clock: stopped })
    await clock.advance(0)
    const b = join('b')
    await clock.advance(10_000)
    expect(a.elector.isLeader()).toBe(true)
    expect(b.elector.isLeader()).toBe(false)
  })

  test('the end that comes in the middle of the campaign leaves no lease behind', async () => {
    const { clock, leases, join } = setup()
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
      const { clock, leases, join } = setup()
      const a = join('a')
      a.work.mockImplementation(outcome)
      await clock.advance(0)
      expect(await a.run.then(() => 'resolved', String)).toBe(expected)
      expect(leases.get()?.spec?.holderIdentity).toBe('')
    }
  })

  test('times that cannot work are refused', () => {
    const { join } = setup()
    expect(() => join('a', { leaseDurationMs: 1000 })).toThrow(RangeError)
    expect(() => join('a', { retryPeriodMs: 700 })).toThrow(RangeError)
    expect(() => join('')).toThrow(RangeError)
  })

  test('whatever the network does to three candidates: never two leaders, and one soon after it heals', async () => {
    const fault = fc.oneof(
      fc.record({ type: fc.constant('slow' as const), sendMs: fc.nat(900), replyMs: fc.nat(900) }),
      fc.record({ type: fc.constant('error' as const), when: fc.constantFrom('send', 'reply') }),
      fc.record({ type: fc.constant('dead' as const) }),
      fc.record({ type: fc.constant('heal' as const) }),
    )
    const step = fc.record({
      who: fc.nat(2),
      fault,
      forMs: fc.nat(1500),
      jumpMs: fc.constantFrom(0, 0, 3_600_000, -3_600_000),
    })
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 25 }), async steps => {
        const { clock, join } = setup()
        const all = ['a', 'b', 'c'].map(identity => join(identity))
        const leaders = () => all.filter(({ elector }) => elector.isLeader())
        const watch = async (ms: number) => {
          for (let left = ms; left > 0; left -= 20) {
            await clock.advance(Math.min(left, 20))
            expect(leaders().length).toBeLessThanOrEqual(1)
            // Work runs only in the process that leads.
            for (const { elector, terms } of all)
              if (terms.at(-1)?.stop.aborted === false) expect(elector.isLeader()).toBe(true)
          }
        }
        for (const { who, fault, forMs, jumpMs } of steps) {
          const faults = all[who]?.faults as Faults
          delete faults.send
          delete faults.reply
          const fail = () => {
            throw new KubeError('Unavailable', 'fault')
          }
          switch (fault.type) {
            case 'slow':
              faults.send = () => clock.sleep(fault.sendMs)
              faults.reply = () => clock.sleep(fault.replyMs)
              break
            case 'error':
              if (fault.when === 'send') faults.send = fail
              else faults.reply = fail
              break
            case 'dead':
              Object.assign(faults, deadLink())
              break
            case 'heal':
              break
          }
          clock.jump(jumpMs)
          await watch(forMs)
        }
        for (const { faults } of all) {
          delete faults.send
          delete faults.reply
        }
        await watch(4000)
        expect(leaders()).toHaveLength(1)
        for (const { end } of all) end.abort()
        await clock.advance(1000)
        await Promise.all(all.map(({ run }) => run))
      }),
      { numRuns: 150 },
    )
  })
})
