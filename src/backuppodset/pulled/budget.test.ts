import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Agent } from 'undici'
import { afterEach, describe, expect, it } from 'vitest'
import { createFakeClock } from '../../kube/clock.ts'
import { silentLog as log } from '../../kube/log.ts'
import { seededRandom } from '../../kube/random.ts'
import { createMemoryStore } from '../../state-store/memory.ts'
import { createWriteBehind } from '../../state-store/write-behind.ts'
import { createStateBudget } from './budget.ts'
import { createPuller, type Target } from './puller.ts'
import { createStates } from './states.ts'

describe('the budget', () => {
  it('is one for all, and no namespace takes more than half of it', () => {
    const budget = createStateBudget(100)
    const [a, b] = [budget.reserve('a'), budget.reserve('b')]
    expect([a.take(40), a.take(11), b.take(50), b.take(1)]).toEqual([true, false, true, false])
    expect(budget.used).toBe(90)
    a.keep(20)
    b.release()
    b.release()
    expect(budget.used).toBe(20)
    expect(budget.reserve('a').take(31)).toBe(false)
    expect(budget.reserve('a').take(30)).toBe(true)
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
    const budget = createStateBudget(32 * mib)
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
    const pull = (port: number) => ({
      ...{ port, path: '/state', headers: [], maxBytes: 256 * mib, timeoutMs: 30_000, intervalMs: 1_000 },
      ...{
        container: 'app',
        push: { path: '/state', method: 'POST' as const, headers: [], everyInterval: false },
      },
    })
    const target = (slot: number): Target => ({
      ...{ slot, ip: '127.0.0.1', floor: 0 },
      holder: { name: `p${slot}`, uid: `uid-${slot}`, epoch: 1, restarts: 0 },
    })
    const set = (namespace: string) => ({ namespace, name: 'web', uid: `set-of-${namespace}` })
    const ask = async (namespace: string, port: number, slots: readonly number[]) => {
      const of = set(namespace)
      puller.sync(of, pull(port) as never, slots.map(target))
      for (const slot of slots) await puller.now(of.uid, slot, AbortSignal.timeout(30_000))
      // Its own loops ask, too, and hold what they are in the middle of.
      puller.stop(of.uid)
      await puller.settled()
    }
    await ask('modest', await appThatSays(mib), [0])
    expect(states.get('set-of-modest', 0)?.bytes).toHaveLength(mib)

    // Twice its size while it comes: more than half of the budget, which is all that a namespace has.
    await ask('greedy', await appThatSays(20 * mib), [0, 1, 2])
    expect(states.problem('set-of-greedy', 0)).toMatchObject({ reason: 'StateBudgetExceeded' })
    expect(budget.used).toBe(mib)

    await ask('greedy', await appThatSays(5 * mib), [0, 1, 2, 3, 4])
    expect(
      [0, 1, 2, 3, 4].filter(slot => states.get('set-of-greedy', slot) !== undefined).length,
    ).toBeLessThan(4)
    expect(budget.used).toBeLessThanOrEqual(17 * mib)
    expect(states.get('set-of-modest', 0)?.bytes).toHaveLength(mib)

    states.drop('set-of-greedy')
    expect(budget.used).toBe(mib)
    await dispatcher.close()
  })
})
