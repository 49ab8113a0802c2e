import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Agent } from 'undici'
import { afterEach, expect, it, vi } from 'vitest'
import { createFakeClock } from '../../kube/clock.ts'
import { silentLog as log } from '../../kube/log.ts'
import { makePull, makeState } from '../testing/pulled.ts'
import { makeCandidate } from '../testing/slots.ts'
import { createStateBudget } from './budget.ts'
import { createRefresher, type Follower, followersOf } from './refresh.ts'

const set = { namespace: 'default', name: 'bps', uid: 'set-uid' }
const follower: Follower = { slot: 0, name: 'hot', uid: 'uid-hot', restarts: 0 }
const live = new Set([follower.uid])
const ending: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const end of ending.splice(0)) await end()
})

/** A refresher and an app that gets states; with `app.holds`, the app holds its answers back in `held`. */
async function onStage(budgetBytes = 1_000) {
  const given: string[] = []
  const held: ServerResponse[] = []
  const app = { holds: false }
  const server = createServer((request, response) => {
    request.on('data', chunk => given.push(String(chunk)))
    request.on('end', () => (app.holds ? held.push(response) : response.writeHead(204).end()))
  }).listen(0, '127.0.0.1')
  await new Promise(resolve => server.once('listening', resolve))
  const dispatcher = new Agent()
  ending.push(async () => {
    await dispatcher.destroy()
    server.closeAllConnections()
    server.close()
  })
  const pull = makePull({
    port: (server.address() as AddressInfo).port,
    ...{ maxBytes: 100, timeoutMs: 30_000, restoreMs: 1_000 },
    push: { path: '/', method: 'POST', headers: [], everyInterval: true },
  })
  const states = new Map<number, string>([[0, 'a']])
  const results: string[] = []
  const budget = createStateBudget(budgetBytes)
  const address = { of: async (): Promise<string | undefined> => '127.0.0.1' }
  const clock = createFakeClock()
  const refresher = createRefresher({
    ...{ budget, dispatcher, clock, log, backups: () => live },
    states: {
      get: (_, slot) => {
        const text = states.get(slot)
        return text === undefined ? undefined : makeState({ bytes: Buffer.from(text) })
      },
    },
    metrics: { pulled() {}, pushed() {}, refreshed: result => results.push(result), forget() {}, reset() {} },
    addressOf: () => address.of(),
  })
  const quiet = (restarts = 0) =>
    refresher.quiet({ ...follower, restarts }, pull, new AbortController().signal)
  return { app, given, held, pull, states, results, budget, refresher, address, clock, quiet }
}

it('F39: each newer state of its slot is given to a backup, and no other slot’s', async () => {
  const { given, pull, states, refresher, budget } = await onStage()
  refresher.sync(set, pull, [follower], live)
  await vi.waitFor(() => expect(given).toEqual(['a']))
  states.set(0, 'b').set(1, 'other')
  refresher.offer(set.uid, 1)
  await refresher.settled()
  expect(given).toEqual(['a'])
  refresher.offer(set.uid, 0)
  await vi.waitFor(() => expect(given).toEqual(['a', 'b']))
  await refresher.settled()
  expect(budget.used).toBe(0)
  refresher.sync(set, pull, [], live)
  refresher.offer(set.uid, 0)
  await refresher.settled()
  expect(given).toEqual(['a', 'b'])
})

it('who is to be a successor is left alone only after the answer to what was sent', async () => {
  const { app, given, held, pull, refresher, quiet } = await onStage()
  app.holds = true
  refresher.sync(set, { ...pull, timeoutMs: 5_000 }, [follower], live)
  await vi.waitFor(() => expect(held).toHaveLength(1))
  let isQuiet: boolean | undefined
  const isOver = quiet().then(clear => {
    isQuiet = clear
  })
  refresher.offer(set.uid, 0)
  await new Promise(resolve => setTimeout(resolve, 50))
  expect(isQuiet).toBeUndefined()
  held[0]?.writeHead(204).end()
  await isOver
  expect([isQuiet, given]).toEqual([true, ['a']])
})

it('a backup that has not answered is in doubt until it takes a state, or is started again', async () => {
  const { app, held, pull, refresher, quiet } = await onStage()
  app.holds = true
  refresher.sync(set, { ...pull, timeoutMs: 1_000 }, [follower], live)
  await vi.waitFor(() => expect(held).toHaveLength(1))
  expect(await quiet()).toBe(false)
  expect(await quiet(1)).toBe(true)
  app.holds = false
  refresher.sync(set, pull, [follower], live)
  await refresher.settled()
  expect(await quiet()).toBe(true)
})

it('D7.refresh: what another process may have sent is waited for as long as an answer may take, once', async () => {
  const { refresher, clock, quiet, pull } = await onStage()
  refresher.begin()
  await clock.advance(100)
  let isQuiet: boolean | undefined
  const waited = quiet().then(clear => {
    isQuiet = clear
  })
  await clock.advance(pull.timeoutMs - 101)
  expect(isQuiet).toBeUndefined()
  await clock.advance(1)
  await waited
  expect(isQuiet).toBe(true)
  expect(await quiet()).toBe(true)
})

it('D7.refresh: and not where the backup has taken a state from this one, nor of a backup that came later', async () => {
  const { given, refresher, quiet, pull } = await onStage()
  refresher.begin()
  refresher.sync(set, pull, [follower], live)
  await vi.waitFor(() => expect(given).toEqual(['a']))
  await refresher.settled()
  expect(await quiet()).toBe(true)
  const { signal } = new AbortController()
  expect(await refresher.quiet({ uid: 'later', restarts: 0 }, pull, signal)).toBe(true)
})

it('a state for which the budget has no room is not sent', async () => {
  const { given, pull, states, results, refresher } = await onStage(20)
  states.set(0, 'x'.repeat(16))
  refresher.sync(set, pull, [follower], live)
  await refresher.settled()
  expect([given, results]).toEqual([[], ['no-room']])
})

it('backups that run and are ready follow the slots in turn', () => {
  const pulled = { restarts: 2, running: true, emptied: false, refused: undefined }
  const views = [
    makeCandidate('h3', 'hotbackup', { pulled }),
    makeCandidate('h1', 'hotbackup', { pulled }),
    makeCandidate('h2', 'hotbackup', { pulled, ready: false }),
    makeCandidate('h4', 'hotbackup', { pulled }),
    makeCandidate('p7', 'primary', { slot: 7, pulled }),
    makeCandidate('p2', 'primary', { slot: 2, pulled }),
  ]
  expect(followersOf(views).map(({ name, slot, restarts }) => [name, slot, restarts])).toEqual([
    ['h1', 2, 2],
    ['h3', 7, 2],
    ['h4', 2, 2],
  ])
  expect(followersOf(views.filter(({ kind }) => kind === 'hotbackup'))).toEqual([])
})

it('D10.addresses: a state is told to nobody whose address the API server does not confirm', async () => {
  const { given, pull, states, refresher, address } = await onStage()
  address.of = async () => undefined
  refresher.sync(set, pull, [follower], live)
  await refresher.settled()
  address.of = () => Promise.reject(new Error('away'))
  refresher.offer(set.uid, 0)
  await refresher.settled()
  expect(given).toEqual([])
  address.of = async () => '127.0.0.1'
  states.set(0, 'b')
  refresher.offer(set.uid, 0)
  await vi.waitFor(() => expect(given).toEqual(['b']))
  await refresher.settled()
})
