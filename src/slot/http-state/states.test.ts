import { createHash } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { createFakeClock } from '../../kube/clock.ts'
import { silentLog } from '../../kube/log.ts'
import { seededRandom } from '../../kube/random.ts'
import { createMemoryStore } from '../../state-store/memory.ts'
import { createWriteBehind } from '../../state-store/write-behind.ts'
import { createStateBudget } from './budget.ts'
import { createStates } from './states.ts'

const holder = (name: string, over: object = {}) => ({
  name,
  uid: `uid-${name}`,
  epoch: 1,
  restarts: 0,
  ...over,
})
const state = (text: string) => ({
  bytes: Buffer.from(text),
  digest: `digest of ${text}`,
  contentType: 'a/b',
})
const times = (takenAt: number, floor = 0) => ({ takenAt, endedAt: takenAt + 0.25, floor })

function setup() {
  const clock = createFakeClock()
  const store = { ...createMemoryStore(clock), durable: true }
  const operator = () => {
    const behind = createWriteBehind(store, { clock, log: silentLog })
    const stop = new AbortController()
    const running = behind.run(stop.signal)
    const states = createStates({
      store: behind,
      budget: createStateBudget(1_000),
      clock,
      random: seededRandom(1),
      log: silentLog,
      changed: () => {},
    })
    const end = () => {
      stop.abort()
      return running
    }
    return { states, behind, end }
  }
  return { clock, store, operator }
}

describe('what a slot has', () => {
  it('D3.http-lives: generations count within a life, and a life ends with the container or the pod', () => {
    const { states } = setup().operator()
    const of = () => states.view('set').slots.get(0)
    expect(states.commit('set', 0, holder('a'), state('1'), times(1))).toBe(true)
    const first = of()
    expect(first).toMatchObject({ generation: 1, bytes: 1 })
    states.commit('set', 0, holder('a'), state('1'), times(2))
    expect(of()).toMatchObject({ generation: 2, incarnation: first?.incarnation })
    // A successor that got the state continues its life; a successor without it begins another one.
    states.inherited('set', 0, holder('b', { epoch: 2 }))
    states.commit('set', 0, holder('b', { epoch: 2 }), state('2'), times(3))
    expect(of()).toMatchObject({ generation: 3, incarnation: first?.incarnation, holder: { name: 'b' } })
    states.commit('set', 0, holder('b', { epoch: 2, restarts: 1 }), state('3'), times(4))
    expect(of()).toMatchObject({ generation: 1 })
    expect(of()?.incarnation).not.toBe(first?.incarnation)
    states.drop('set', [0])
    expect(of()).toBeUndefined()
  })

  it('an answer that began earlier, or came from whoever has been succeeded, changes nothing', () => {
    const { states } = setup().operator()
    states.commit('set', 0, holder('a', { epoch: 2 }), state('new'), times(10))
    expect(states.commit('set', 0, holder('a', { epoch: 2 }), state('slow'), times(9))).toBe(false)
    expect(states.commit('set', 0, holder('z'), state('old'), times(11))).toBe(false)
    expect(states.get('set', 0)?.bytes.toString()).toBe('new')
  })

  it('numbers go on where the status of this pod left them', () => {
    const { states } = setup().operator()
    states.commit('set', 0, holder('a'), state('1'), times(1, 41))
    expect(states.view('set').slots.get(0)?.generation).toBe(42)
  })
})

describe('the next operator', () => {
  it('is given no bytes that are not what their digest says', async () => {
    const { clock, operator } = setup()
    const before = operator()
    // Monotonic times may have fractions.
    before.states.commit('set', 0, holder('a'), state('x'), times(clock.monotonic() + 0.125))
    await clock.advance(10)
    await before.end()
    await clock.advance(5_000)
    const after = operator()
    expect(after.states.loaded({ namespace: 'default', uid: 'set' }, [0, 1], () => false)).toBe(false)
    await clock.advance(100)
    expect(after.states.loaded({ namespace: 'default', uid: 'set' }, [0, 1], () => false)).toBe(true)
    expect(after.states.get('set', 0)).toBeUndefined()
    await after.end()
  })

  it('D9.pulled-state: finds the state with its age and its life, where its pod is gone', async () => {
    const { clock, operator } = setup()
    const digest = createHash('sha256').update('x').digest('hex')
    const before = operator()
    before.states.commit('set', 0, holder('a'), { ...state('x'), digest }, times(clock.monotonic() + 0.125))
    const incarnation = before.states.get('set', 0)?.incarnation
    await clock.advance(10)
    await before.end()
    await clock.advance(5_000)
    const after = operator()
    after.states.loaded({ namespace: 'default', uid: 'set' }, [0], () => false)
    await clock.advance(100)
    const found = after.states.get('set', 0)
    expect(found).toMatchObject({ incarnation, generation: 1, contentType: 'a/b', holder: { name: 'a' } })
    expect(found?.bytes.toString()).toBe('x')
    expect(Math.round(clock.monotonic() - (found?.takenAt ?? 0))).toBeGreaterThanOrEqual(5_000)
    await after.end()
  })
})

it('a term that goes on after a blip has what was pulled before it, and the store follows again', async () => {
  const { clock, operator, store } = setup()
  const { states, behind, end } = operator()
  states.commit('set', 0, holder('a'), state('1'), times(1))
  await clock.advance(100)
  behind.abandon()
  await store.delete(['understudy:set:state:0:meta', 'understudy:set:state:0:bytes'])
  states.goOn()
  expect(states.get('set', 0)?.bytes.toString()).toBe('1')
  await clock.advance(100)
  expect(await store.get('understudy:set:state:0:bytes')).toBeDefined()
  await end()
})
