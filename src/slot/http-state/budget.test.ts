import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Agent } from 'undici'
import { afterEach, describe, expect, it } from 'vitest'
import { createFakeClock } from '../../kube/clock.ts'
import { silentLog as log } from '../../kube/log.ts'
import { seededRandom } from '../../kube/random.ts'
import { createMemoryStore } from '../../state-store/memory.ts'
import { createWriteBehind } from '../../state-store/write-behind.ts'
import { makePull } from '../testing/pulled.ts'
import { createStateBudget, type StateBudget } from './budget.ts'
import { createPuller, type Target } from './puller.ts'
import { createStates } from './states.ts'

describe('the budget', () => {
  it('is one for all, and what goes beyond it is refused', () => {
    const budget = createStateBudget(100)
    const [a, b] = [budget.reserve('a'), budget.reserve('b')]
    expect([a.take(40), a.take(11), b.take(30), b.take(1)]).toEqual([true, false, true, false])
    expect(budget.used).toBe(70)
    a.keep(20)
    b.release()
    b.release()
    expect(budget.used).toBe(20)
    expect(budget.reserve('a').take(31)).toBe(false)
    expect(budget.reserve('a').take(30)).toBe(true)
  })

  const most = (budget: ReturnType<typeof createStateBudget>, namespace: string) => {
    const room = budget.reserve(namespace)
    let taken = 0
    while (room.take(1)) taken += 1
    return taken
  }

  it('D10.state-share: namespaces that take all they get leave something to each that comes after them', () => {
    const budget = createStateBudget(1_000)
    expect(['a', 'b', 'c', 'd'].map(namespace => most(budget, namespace))).toEqual([500, 250, 125, 62])
  })

  it('D10.state-share: a state is renewed beside the old one, however much others have taken since', () => {
    const budget = createStateBudget(1_000)
    const kept = budget.reserve('modest')
    expect(kept.take(200)).toBe(true)
    most(budget, 'greedy')
    expect(budget.reserve('modest').take(200)).toBe(false)
    const renewed = budget.reserve('modest', 'renewed')
    expect(renewed.take(200)).toBe(true)
    // `greedy` cannot use this to take the room that is left for others.
    const more = budget.reserve('greedy', 'renewed')
    let taken = 0
    while (more.take(1)) taken += 1
    expect(budget.used).toBe(400 + 450)
    expect(taken).toBe(50)
  })
})

describe('applications that say as much as they are let', () => {
  const servers: Server[] = []
  afterEach(() => {
    for (const server of servers.splice(0)) server.close()
  })
  const appThatSays = async (bytes: number) => {
    const server = createServer((_, response) => response.end(Buffer.alloc(bytes, 'x')))
    servers.push(server)
    await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
    return (server.address() as AddressInfo).port
  }

  it('fill the budget and not the operator, and what was there before stays', async () => {
    const mib = 2 ** 20
    const clock = createFakeClock()
    const whole = createStateBudget(32 * mib)
    const uses: string[] = []
    const budget: StateBudget = {
      bytes: whole.bytes,
      get used() {
        return whole.used
      },
      reserve(namespace, use) {
        uses.push(`${namespace}: ${use}`)
        return whole.reserve(namespace, use)
      },
    }
    const store = createWriteBehind(createMemoryStore(clock), { clock, log })
    const states = createStates({
      ...{ store, budget, clock, log },
      random: seededRandom(1),
      changed: () => {},
    })
    const dispatcher = new Agent()
    const puller = createPuller({
      confirms: async () => true,
      ...{ states, budget, dispatcher, clock, log },
      isCurrent: () => true,
      changed: () => {},
    })
    const pull = (port: number) => makePull({ port, maxBytes: 256 * mib, timeoutMs: 30_000 })
    const target = (slot: number): Target => ({
      ...{ slot, ip: '127.0.0.1', floor: 0 },
      holder: { name: `p${slot}`, uid: `uid-${slot}`, epoch: 1, restarts: 0 },
    })
    const set = (namespace: string) => ({ namespace, name: 'web', uid: `set-of-${namespace}` })
    const ask = async (namespace: string, port: number, slots: readonly number[]) => {
      const of = set(namespace)
      puller.sync(of, pull(port), slots.map(target))
      for (const slot of slots) await puller.now(of.uid, slot, AbortSignal.timeout(30_000))
      // The puller's own loops pull too and hold reservations while they do.
      puller.stop(of.uid)
      await puller.settled()
    }
    await ask('modest', await appThatSays(mib), [0])
    expect(states.get('set-of-modest', 0)?.bytes).toHaveLength(mib)

    // Takes twice its size during the transfer: more than half of the bytes that `modest` leaves.
    await ask('greedy', await appThatSays(20 * mib), [0, 1, 2])
    expect(states.problem('set-of-greedy', 0)).toMatchObject({ reason: 'StateBudgetExceeded' })
    expect(budget.used).toBe(mib)

    await ask('greedy', await appThatSays(5 * mib), [0, 1, 2, 3, 4])
    expect(
      [0, 1, 2, 3, 4].filter(slot => states.get('set-of-greedy', slot) !== undefined).length,
    ).toBeLessThan(4)
    expect(budget.used).toBeLessThanOrEqual(17 * mib)
    expect(states.get('set-of-modest', 0)?.bytes).toHaveLength(mib)

    await ask('another', await appThatSays(2 * mib), [0, 1, 2, 3, 4, 5, 6, 7])
    uses.length = 0
    await ask('modest', await appThatSays(mib), [0])
    expect(new Set(uses)).toEqual(new Set(['modest: renewed']))
    uses.length = 0
    await ask('third', await appThatSays(mib), [0])
    expect(uses[0]).toBe('third: kept')
    // After two namespaces that take all they get, a third still gets something.
    expect(states.get('set-of-third', 0)?.bytes).toHaveLength(mib)

    for (const namespace of ['greedy', 'another', 'third']) states.drop(`set-of-${namespace}`)
    expect(budget.used).toBe(mib)
    await dispatcher.close()
  })
})
