import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { LeadershipLost } from './election.ts'
import { KubeError } from './errors.ts'
import { deadLink, makeCandidates } from './testing/candidates.ts'
import type { Faults } from './testing/memory-leases.ts'

describe('an election over a bad network and with bad clocks', () => {
  test('an outage shorter than the deadline costs nothing, a longer one ends the term before expiry', async () => {
    const { clock, leases, join } = makeCandidates()
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

  test('one request lost on a dead connection does not end the term', async () => {
    const { clock, join } = makeCandidates()
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
    const { clock, join } = makeCandidates()
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
    const { clock, join } = makeCandidates()
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

  test('a renewal whose answer is lost is found out by reading', async () => {
    const { clock, join } = makeCandidates()
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
    const { clock, join } = makeCandidates()
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
    const { clock, join } = makeCandidates()
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
    const { clock, leases, join } = makeCandidates()
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
    const { clock, leases, join } = makeCandidates()
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
    const { clock, join } = makeCandidates()
    const stopped = { ...clock, now: () => 0 }
    const a = join('a', { clock: stopped })
    await clock.advance(0)
    const b = join('b')
    await clock.advance(10_000)
    expect(a.elector.isLeader()).toBe(true)
    expect(b.elector.isLeader()).toBe(false)
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
        const { clock, join } = makeCandidates()
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
