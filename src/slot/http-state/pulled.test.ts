import { createHash } from 'node:crypto'
import { expect, it } from 'vitest'
import { labels } from '../../api/labels.ts'
import { createFakeClock } from '../../kube/clock.ts'
import { silentLog } from '../../kube/log.ts'
import { seededRandom } from '../../kube/random.ts'
import type { Pod } from '../../kube/resources.ts'
import { createStore } from '../../kube/store.ts'
import { createMemoryStore } from '../../state-store/memory.ts'
import { createWriteBehind } from '../../state-store/write-behind.ts'
import { makePodObject } from '../testing/objects.ts'
import { makePull } from '../testing/pulled.ts'
import { owner } from '../testing/slot-context.ts'
import { makeCandidate } from '../testing/slots.ts'
import { createStateBudget } from './budget.ts'
import { createPulled, type PulledOfSet } from './pulled.ts'
import { createStates } from './states.ts'

it('a blip of leadership keeps what was pulled; another leader in between makes it worthless', async () => {
  const clock = createFakeClock()
  const store = createWriteBehind({ ...createMemoryStore(clock), durable: true }, { clock, log: silentLog })
  const stop = new AbortController()
  const following = store.run(stop.signal)
  const budget = createStateBudget(1_000)
  const common = { store, budget, clock, log: silentLog, changed: () => {} }
  const set = { ...owner, uid: 'set', pull: undefined }
  const states = createStates({ ...common, random: seededRandom(1) })
  const holder = { name: 'a', uid: 'uid-a', epoch: 1, restarts: 0 }
  const bytes = Buffer.from('one')
  const digest = createHash('sha256').update(bytes).digest('hex')
  const state = { bytes, digest, contentType: 'a/b' }
  states.commit('set', 0, holder, state, { takenAt: 1, endedAt: 2, floor: 0 })
  await clock.advance(100)

  const pulled = createPulled({
    ...common,
    random: seededRandom(2),
    pods: createStore<Pod>(),
    read: async () => undefined,
    isDeleted: () => false,
  })
  pulled.begin(false)
  const status = { slots: [{ slot: 0, pod: 'a', epoch: 1, ready: true }] }
  const ofSet = pulled.ofSet('set', new AbortController().signal)
  ofSet.loaded(set, status)
  await clock.advance(100)
  const slots = () => [...ofSet.view().slots.keys()]
  expect(slots()).toEqual([0])

  await pulled.end()
  store.abandon()
  pulled.begin(true)
  expect(slots()).toEqual([0])
  await pulled.end()
  pulled.begin(false)
  expect(slots()).toEqual([])
  await pulled.close()
  stop.abort()
  await following
})

it('D7.refresh: a successor that another leader may have kept in step is given its state after that one’s answer', async () => {
  const clock = createFakeClock()
  const store = createWriteBehind(createMemoryStore(clock), { clock, log: silentLog })
  const pods = createStore<Pod>()
  pods.upsert({
    metadata: {
      ...{ name: 'hot', namespace: 'default', uid: 'hot', resourceVersion: '1' },
      labels: { [labels.type]: 'hotbackup' },
    },
  })
  const pulled = createPulled({
    ...{ store, clock, log: silentLog, pods, budget: createStateBudget(1_000), random: seededRandom(1) },
    ...{ changed: () => {}, read: async () => undefined, isDeleted: () => false },
  })
  const answered = async (everyInterval: boolean) => {
    const { push, ...pulling } = makePull({ timeoutMs: 5_000 })
    const pull = { ...pulling, push: { ...push, everyInterval } }
    let isOver = false
    const { signal } = new AbortController()
    const given = pulled
      .ofSet('set', signal)
      .acts({ ...owner, uid: 'set', pull }, signal)
      .giveState(makeCandidate('hot', 'hotbackup', { uid: 'hot' }), 0, false)
    const over = given.then(({ result }) => {
      isOver = true
      // It got no state here; this only tested whether it was allowed to.
      expect(result).toMatchObject({ type: 'gone', why: 'its slot no longer has a state' })
    })
    await clock.advance(4_999)
    const wasOver = isOver
    await clock.advance(1)
    await over
    return wasOver
  }
  pulled.begin(false)
  expect(await answered(true)).toBe(false)
  pulled.begin(false)
  expect(await answered(false)).toBe(true)
  // No other process has led since: this process knows what it has sent.
  pulled.begin(true)
  expect(await answered(true)).toBe(true)
  await pulled.close()
})

it('D10.names: no states are asked of a set that is deleted while its pass runs, nor after the term', async () => {
  const clock = createFakeClock()
  const store = createWriteBehind(createMemoryStore(clock), { clock, log: silentLog })
  const pods = createStore<Pod>()
  pods.upsert({ ...makePodObject('p'), status: { podIP: '10.0.0.1' } })
  const asked: string[] = []
  const pulled = createPulled({
    ...{ store, clock, log: silentLog, pods, budget: createStateBudget(1_000), random: seededRandom(1) },
    ...{ changed: () => {}, isDeleted: () => false },
    read: async ({ name }) => {
      asked.push(name)
      return undefined
    },
  })
  const set = { ...owner, uid: 'set', pull: makePull() }
  const primary = makeCandidate('p', 'primary', {
    ...{ slot: 0, epoch: 1 },
    pulled: { restarts: 0, running: true, emptied: false, refused: undefined },
  })
  const askedAfter = async (ofSet: PulledOfSet) => {
    ofSet.after(set, { lost: new Set(), released: [], pods: [primary], status: undefined })
    asked.length = 0
    await clock.advance(5_000)
    return asked.length
  }
  pulled.begin(false)
  const life = new AbortController()
  const ofSet = pulled.ofSet('set', life.signal)
  expect(await askedAfter(ofSet)).toBeGreaterThan(0)
  life.abort()
  expect(await askedAfter(ofSet)).toBe(0)
  const other = pulled.ofSet('set', new AbortController().signal)
  await pulled.end()
  expect(await askedAfter(other), 'after the term').toBe(0)
  await pulled.close()
})
