import { createHash } from 'node:crypto'
import { expect, it } from 'vitest'
import type { ParsedSet } from '../../api/parse.ts'
import { createFakeClock } from '../../kube/clock.ts'
import { silentLog } from '../../kube/log.ts'
import { seededRandom } from '../../kube/random.ts'
import type { Pod } from '../../kube/resources.ts'
import { createStore } from '../../kube/store.ts'
import { createMemoryStore } from '../../state-store/memory.ts'
import { createWriteBehind } from '../../state-store/write-behind.ts'
import { makeSet } from '../testing/snapshots.ts'
import { createStateBudget } from './budget.ts'
import { createPulled } from './pulled.ts'
import { createStates } from './states.ts'

it('a blip of leadership keeps what was pulled; another leader in between makes it worthless', async () => {
  const clock = createFakeClock()
  const store = createWriteBehind({ ...createMemoryStore(clock), durable: true }, { clock, log: silentLog })
  const stop = new AbortController()
  const following = store.run(stop.signal)
  const budget = createStateBudget(1_000)
  const common = { store, budget, clock, log: silentLog, changed: () => {} }
  const set: ParsedSet = { ...makeSet(), uid: 'set' }
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
  pulled.loaded(set, status)
  await clock.advance(100)
  const slots = () => [...pulled.view('set').slots.keys()]
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
