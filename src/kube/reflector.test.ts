import { afterEach, describe, expect, test, vi } from 'vitest'
import { createApi } from './api.ts'
import { createFakeClock } from './clock.ts'
import type { ReflectorGauges } from './metrics-hooks.ts'
import type { KubeObject } from './object.ts'
import { seededRandom } from './random.ts'
import { createReflector, type ReflectorOptions } from './reflector.ts'
import type { Resource } from './resources.ts'
import { createStore } from './store.ts'
import { statusBody } from './testing/http-server.ts'
import { startWatchServer, type WatchServer } from './testing/watch-server.ts'

interface Thing extends KubeObject {
  readonly note?: string
}
const things: Resource<Thing> = { group: '', version: 'v1', plural: 'pods', kind: 'Pod', namespaced: true }

const cleanups: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup()
})

async function setUp(
  options: Partial<ReflectorOptions<Thing>> & { before?: (server: WatchServer) => unknown } = {},
) {
  const server = await startWatchServer()
  options.before?.(server)
  const api = createApi({ connection: server.connection })
  // The test moves the clock of pauses; the network runs in real time.
  const clock = createFakeClock()
  const store = createStore<Thing>({ freeze: true })
  const changes: string[] = []
  store.subscribe(({ type, object, initial }) => {
    changes.push(`${type} ${object.metadata.name} ${object.metadata.uid}${initial ? ' initial' : ''}`)
  })
  const counts: Record<string, number> = {}
  const count = (name: string) => {
    counts[name] = (counts[name] ?? 0) + 1
  }
  let gauges: (() => ReflectorGauges) | undefined
  const logged: string[] = []
  const write = (level: string) => (_: unknown, message: string) => logged.push(`${level} ${message}`)
  const reflector = createReflector<Thing>({
    api,
    resource: things,
    query: { namespace: 'ns' },
    store,
    clock,
    random: seededRandom(3),
    log: { debug: write('debug'), info: write('info'), warn: write('warn'), error: write('error') },
    metrics: {
      list: () => count('lists'),
      watch: () => count('watches'),
      event: (_, type) => count(type),
      error: (_, code) => count(`error ${code}`),
      subscriberError: () => count('subscriber errors'),
      gauges: (_, read) => {
        gauges = read
      },
    },
    ...options,
  })
  const stop = new AbortController()
  const running = reflector.run(stop.signal)
  let ended = false
  running.finally(() => {
    ended = true
  })
  cleanups.push(
    () => server.close(),
    () => api.close(),
    async () => {
      stop.abort()
      await running
    },
  )
  const has = (...expected: string[]) =>
    vi.waitFor(() => {
      const names = store.list().map(o => `${o.metadata.name}@${o.metadata.resourceVersion}`)
      expect(names.sort()).toEqual(expected.sort())
    })
  return {
    server,
    store,
    clock,
    reflector,
    changes,
    counts,
    logged,
    stop,
    has,
    ended: () => ended,
    read: () => gauges?.() as ReflectorGauges,
    watching: () => vi.waitFor(() => expect(server.watchers()).toBe(1)),
    /** Waits for the pause after a failure, and skips it. */
    async pause(ms: number) {
      await clock.untilSleepers(1)
      await clock.advance(ms)
    },
  }
}

describe('the first snapshot', () => {
  test('streams, is initial, and is followed', async () => {
    const t = await setUp({ before: server => ['a', 'b'].map(name => server.put(name)) })
    expect(t.reflector.hasSynced()).toBe(false)
    await t.reflector.synced(AbortSignal.timeout(5_000))
    expect(t.changes).toEqual(['added a uid-a initial', 'added b uid-b initial'])
    t.server.put('a', { note: 'x' })
    t.server.put('c')
    t.server.delete('b')
    await t.has('a@103', 'c@104')
    expect(t.changes.slice(2)).toEqual(['updated a uid-a', 'added c uid-c', 'deleted b uid-b'])
    expect(t.store.resourceVersion()).toBe(105n)
    expect(t.counts).toMatchObject({ lists: 1, watches: 1 })
  })

  test('comes in pages from a server that does not stream lists', async () => {
    const t = await setUp({
      before(server) {
        server.watchList = false
        for (let i = 0; i < 1_234; i++) server.put(`pod-${i}`)
      },
    })
    await t.reflector.synced(AbortSignal.timeout(5_000))
    expect(t.store.size).toBe(1_234)
    expect(t.changes.every(change => change.endsWith('initial'))).toBe(true)
    const lists = t.server.received.filter(r => !r.url.searchParams.has('watch'))
    expect(lists.map(r => r.url.searchParams.get('continue'))).toEqual([null, '500', '1000'])
    t.server.put('late')
    await vi.waitFor(() => expect(t.store.get('ns/late')).toBeDefined())
    // The refusal is remembered: the next snapshot does not try WatchList again.
    t.server.compact()
    t.server.endWatches('cut')
    await t.pause(2_000)
    await t.watching()
    expect(t.server.received.filter(r => r.url.searchParams.has('sendInitialEvents'))).toHaveLength(1)
  })

  test('is taken once more in one piece when its continuation expires', async () => {
    const t = await setUp({
      before(server) {
        server.watchList = false
        for (let i = 0; i < 600; i++) server.put(`pod-${i}`)
        let pages = 0
        const page = () =>
          server.next('list', request => {
            pages += 1
            if (pages === 2) request.json(410, statusBody(410, 'Expired', 'continue token is too old'))
            else
              request.json(200, {
                metadata: { resourceVersion: '700', continue: 'x' },
                items: [{ metadata: { name: 'half', uid: 'h', resourceVersion: '1' } }],
              })
          })
        page()
        page()
      },
    })
    await t.reflector.synced(AbortSignal.timeout(5_000))
    expect(t.store.size).toBe(600)
    expect(t.counts).not.toHaveProperty('error Gone')
  })

  test('without it nobody is synced, and waiting for it can be given up', async () => {
    const t = await setUp({
      before: server => server.next('watch', ({ response }) => response.writeHead(200).flushHeaders()),
    })
    await expect(t.reflector.synced(AbortSignal.timeout(50))).rejects.toThrow()
    expect(t.reflector.hasSynced()).toBe(false)
  })

  test('that breaks off is not taken for the whole', async () => {
    const t = await setUp({
      before(server) {
        server.put('a')
        server.put('b')
        server.next('watch', ({ response }) => {
          const object = { metadata: { name: 'a', namespace: 'ns', uid: 'uid-a', resourceVersion: '101' } }
          response.end(`${JSON.stringify({ type: 'ADDED', object })}\n`)
        })
      },
    })
    await t.clock.untilSleepers(1)
    expect([t.store.size, t.reflector.hasSynced()]).toEqual([0, false])
    await t.pause(2_000)
    await t.has('a@101', 'b@102')
  })
})

describe('after a failure it goes on where it was', () => {
  test.each(['end', 'cut'] as const)('watch ended by %s: no second list, nothing missed', async how => {
    const t = await setUp({ before: server => server.put('a') })
    await t.watching()
    t.server.endWatches(how)
    t.server.silently(() => t.server.put('b'))
    // A watch that ends within a second and without any event is a failure, and a cut always is.
    if (how === 'cut') await t.pause(2_000)
    await t.has('a@101', 'b@102')
    expect(t.counts).toMatchObject({ lists: 1, watches: 2 })
    expect(t.server.received.at(-1)?.url.searchParams.get('resourceVersion')).toBe('101')
  })

  test('cut in the middle of an event: the event comes again', async () => {
    const t = await setUp()
    await t.watching()
    t.server.silently(() => t.server.put('a'))
    t.server.raw('{"type":"ADDED","object":{"metadata":{"name":"a","uid":"uid-')
    t.server.endWatches('end')
    await t.pause(2_000)
    await t.has('a@101')
    expect(t.changes).toEqual(['added a uid-a'])
  })

  test('a server that answers 500, 429 or refuses connections for a while', async () => {
    const t = await setUp({ before: server => server.put('a') })
    await t.watching()
    t.server.next('watch', request => request.json(500, statusBody(500, 'InternalError', 'etcd')))
    t.server.next('watch', request => request.cut())
    t.server.next('watch', request =>
      request.json(429, statusBody(429, 'TooManyRequests', 'later'), { 'retry-after': '20' }),
    )
    t.server.endWatches('cut')
    t.server.silently(() => t.server.put('b'))
    // 0.8 s, 1.6 s, 3.2 s before jitter; the fourth pause is the server's Retry-After.
    await t.pause(1_600)
    await t.pause(3_200)
    await t.pause(6_400)
    await t.clock.untilSleepers(1)
    await t.clock.advance(19_999)
    expect(t.clock.sleepers()).toBe(1)
    await t.clock.advance(1)
    await t.has('a@101', 'b@102')
    expect(t.counts).toMatchObject({ lists: 1, 'error Unavailable': 3, 'error Throttled': 1 })
  })

  test('refused rights are asked for slowly, and the store stays', async () => {
    const t = await setUp({ before: server => server.put('a') })
    await t.watching()
    t.server.next('watch', request => request.json(403, statusBody(403, 'Forbidden', 'no')))
    t.server.endWatches('cut')
    await t.pause(1_600)
    await t.clock.untilSleepers(1)
    await t.clock.advance(4_999)
    expect(t.clock.sleepers()).toBe(1)
    await t.clock.advance(5_001)
    await t.watching()
    expect(t.store.size).toBe(1)
    expect(t.counts).toMatchObject({ 'error Forbidden': 1 })
  })

  test('pauses grow while it fails and start small again after a sound watch', async () => {
    const t = await setUp()
    await t.watching()
    for (let i = 0; i < 6; i++) t.server.next('watch', request => request.cut())
    t.server.endWatches('cut')
    const pauses: number[] = []
    for (let i = 0; i < 7; i++) {
      await t.clock.untilSleepers(1)
      const before = t.clock.monotonic()
      while (t.clock.sleepers() > 0) await t.clock.advance(100)
      pauses.push(t.clock.monotonic() - before)
    }
    pauses.forEach((pause, i) => {
      const base = Math.min(800 * 2 ** i, 30_000)
      expect(pause).toBeGreaterThanOrEqual(base)
      expect(pause).toBeLessThanOrEqual(Math.min(base * 2, 30_000) + 100)
    })
    await t.watching()
    await t.clock.advance(10_000)
    t.server.endWatches('cut')
    await t.clock.untilSleepers(1)
    await t.clock.advance(1_600)
    expect(t.clock.sleepers()).toBe(0)
    await t.watching()
  })

  test('a server that ends every watch at once is not asked in a tight loop', async () => {
    const t = await setUp()
    await t.watching()
    for (let i = 0; i < 3; i++) t.server.next('watch', ({ response }) => response.writeHead(200).end())
    t.server.endWatches('end')
    await t.pause(1_600)
    await t.pause(3_200)
    await t.pause(6_400)
    await t.watching()
    expect(t.counts).toMatchObject({ watches: 5, lists: 1 })
  })

  test('a connection that has fallen silent is replaced', async () => {
    const t = await setUp({
      idleTimeoutMs: 300,
      before(server) {
        server.put('a')
        server.next('watch', ({ response }) => response.writeHead(200).flushHeaders())
      },
    })
    // The reflector notices the half-open connection without any word from the other side.
    await t.pause(2_000)
    await t.has('a@101')
    // The second watch is idle too and may time out as well.
    expect(t.counts['error Unavailable']).toBeGreaterThanOrEqual(1)
    expect(t.counts).toMatchObject({ lists: 1 })
  })
})

describe('versions', () => {
  test('a bookmark moves the point from which it goes on', async () => {
    const t = await setUp({ before: server => server.put('a') })
    await t.watching()
    t.server.bookmark()
    await vi.waitFor(() => expect(t.store.resourceVersion()).toBe(102n))
    // Without the bookmark this would be a 410 and a relist.
    t.server.compact()
    t.server.endWatches('cut')
    t.server.silently(() => t.server.put('b'))
    await t.pause(2_000)
    await t.has('a@101', 'b@103')
    expect(t.counts).toMatchObject({ lists: 1, BOOKMARK: 2 })
    expect(t.counts).not.toHaveProperty('error Gone')
  })

  test('too old: listed again at once, and the difference is told, deaths under the same name included', async () => {
    const t = await setUp({
      before(server) {
        for (const name of ['kept', 'changed', 'deleted', 'replaced']) server.put(name)
      },
    })
    await t.watching()
    t.changes.length = 0
    t.server.silently(() => {
      t.server.put('changed', { note: 'x' })
      t.server.delete('deleted')
      t.server.delete('replaced')
      t.server.put('replaced', { uid: 'second' })
      t.server.put('new')
      t.server.compact()
    })
    t.server.endWatches('cut')
    await t.pause(2_000)
    await t.has('kept@101', 'changed@105', 'replaced@108', 'new@109')
    expect(t.changes.sort()).toEqual([
      'added new uid-new',
      'added replaced second',
      'deleted deleted uid-deleted',
      'deleted replaced uid-replaced',
      'updated changed uid-changed',
    ])
    expect(t.counts).toMatchObject({ lists: 2, 'error Gone': 1 })
    expect(t.clock.sleepers()).toBe(0)
  })

  test('410 in the middle of a running watch', async () => {
    const t = await setUp({ before: server => server.put('a') })
    await t.watching()
    t.server.silently(() => t.server.delete('a'))
    t.server.raw(`${JSON.stringify({ type: 'ERROR', object: statusBody(410, 'Expired', 'too old') })}\n`)
    await t.has()
    expect(t.changes).toEqual(['added a uid-a initial', 'deleted a uid-a'])
  })

  test('a server that says 410 to everything is not asked in a tight loop', async () => {
    const t = await setUp()
    await t.watching()
    for (let i = 0; i < 5; i++)
      t.server.next('watch', request => request.json(410, statusBody(410, 'Expired', 'too old')))
    t.server.endWatches('cut')
    await t.pause(2_000)
    await t.clock.untilSleepers(1)
    expect(t.counts).toMatchObject({ 'error Gone': 2 })
  })

  test('a server that lags behind what is known is not believed', async () => {
    const t = await setUp({ before: server => ['a', 'b'].map(name => server.put(name)) })
    await t.watching()
    t.server.next('watch', request => request.json(410, statusBody(410, 'Expired', 'too old')))
    t.server.next('watch', ({ response }) => {
      // A past state: b did not exist yet.
      const object = { metadata: { name: 'a', namespace: 'ns', uid: 'uid-a', resourceVersion: '101' } }
      const end = {
        metadata: { resourceVersion: '101', annotations: { 'k8s.io/initial-events-end': 'true' } },
      }
      response.write(`${JSON.stringify({ type: 'ADDED', object })}\n`)
      response.write(`${JSON.stringify({ type: 'BOOKMARK', object: end })}\n`)
    })
    t.server.endWatches('cut')
    await t.pause(2_000)
    await t.clock.untilSleepers(1)
    expect(t.store.size).toBe(2)
    await t.pause(10_000)
    await t.watching()
    expect(t.changes.filter(change => change.startsWith('deleted'))).toEqual([])
    expect(t.counts).toMatchObject({ lists: 2 })
  })

  test('a cluster restored from a backup is believed in the end', async () => {
    const t = await setUp({ before: server => ['a', 'b'].map(name => server.put(name)) })
    await t.watching()
    t.server.silently(() => t.server.delete('b'))
    t.server.version = 50
    t.server.next('watch', request => request.json(410, statusBody(410, 'Expired', 'too old')))
    t.server.endWatches('cut')
    await vi.waitFor(async () => {
      await t.clock.advance(60_000)
      expect(t.store.list().map(o => o.metadata.name)).toEqual(['a'])
    })
    expect(t.store.resourceVersion()).toBe(50n)
  })

  test('an event from the past is not applied', async () => {
    const t = await setUp({ before: server => ['a', 'b'].map(name => server.put(name)) })
    await t.watching()
    const object = { metadata: { name: 'a', namespace: 'ns', uid: 'uid-a', resourceVersion: '90' } }
    t.server.raw(`${JSON.stringify({ type: 'DELETED', object })}\n`)
    await vi.waitFor(() => expect(t.counts).toMatchObject({ 'error Gone': 1, lists: 2 }))
    await t.has('a@101', 'b@102')
    expect(t.changes.filter(change => change.startsWith('deleted'))).toEqual([])
  })
})

describe('contents', () => {
  test('a line of 5 MB with letters of every size', async () => {
    const t = await setUp()
    await t.watching()
    const note = '🎭ß'.repeat(900_000)
    t.server.put('big', { note })
    await t.has('big@101')
    expect(t.store.get('ns/big')?.note).toBe(note)
  })

  test('a character cut in two', async () => {
    const t = await setUp()
    await t.watching()
    const object = { metadata: { name: 'a', namespace: 'ns', uid: 'u', resourceVersion: '101' }, note: '🎭' }
    const line = Buffer.from(`${JSON.stringify({ type: 'ADDED', object })}\n`)
    const half = line.indexOf(0xf0) + 2
    t.server.raw(line.subarray(0, half))
    await new Promise(resolve => setTimeout(resolve, 20))
    t.server.raw(line.subarray(half))
    await t.has('a@101')
    expect(t.store.get('ns/a')?.note).toBe('🎭')
  })

  test('managed fields are dropped from snapshots and events, by either way of listing', async () => {
    for (const watchList of [true, false]) {
      const t = await setUp({
        before(server) {
          server.watchList = watchList
          server.put('a')
        },
      })
      await t.watching()
      t.server.put('b')
      await t.has('a@101', 'b@102')
      for (const object of t.store.list()) expect(object.metadata.managedFields).toBeUndefined()
    }
  })

  test('a transform of the caller replaces ours', async () => {
    const t = await setUp({
      before: server => server.put('a'),
      transform: o => ({ ...o, note: 'mine' }),
    })
    await t.has('a@101')
    expect(t.store.get('ns/a')?.note).toBe('mine')
  })
})

test('a subscriber that throws is counted and stops nothing', async () => {
  const t = await setUp({ before: server => server.put('a') })
  await t.watching()
  t.store.subscribe(() => {
    throw new Error('mine')
  })
  t.server.put('b')
  t.server.put('c')
  await t.has('a@101', 'b@102', 'c@103')
  expect(t.counts).toMatchObject({ 'subscriber errors': 2, watches: 1 })
  expect(t.logged.filter(line => line.startsWith('error'))).toHaveLength(2)
  expect(t.store.resourceVersion()).toBe(103n)
})

test('says how fresh it is', async () => {
  const t = await setUp({ before: server => server.put('a') })
  expect(t.read()).toMatchObject({ synced: false, objects: 0 })
  await t.watching()
  await t.clock.advance(7_000)
  expect(t.read()).toEqual({ lastEventAgeSeconds: 7, objects: 1, resourceVersion: 101n, synced: true })
  t.server.bookmark()
  await vi.waitFor(() => expect(t.read().lastEventAgeSeconds).toBe(0))
})

test.each([
  ['while it watches', async (t: Awaited<ReturnType<typeof setUp>>) => t.watching()],
  [
    'while it pauses',
    async (t: Awaited<ReturnType<typeof setUp>>) => {
      await t.watching()
      t.server.endWatches('cut')
      await t.clock.untilSleepers(1)
    },
  ],
])('ends %s when told to, and only then', async (_, reach) => {
  const t = await setUp()
  await reach(t)
  expect(t.ended()).toBe(false)
  t.stop.abort()
  await vi.waitFor(() => expect(t.ended()).toBe(true))
  expect(t.server.watchers()).toBe(0)
})

describe('freshness', () => {
  test('a refresh leaves a watch that shows nothing and takes what the server has', async () => {
    const t = await setUp({ before: server => server.put('a') })
    await t.watching()
    // Half-open: the watch stays open, and nothing comes.
    t.server.silently(() => t.server.put('b'))
    await t.has('a@101')
    await t.reflector.refresh(AbortSignal.timeout(5_000))
    await t.has('a@101', 'b@102')
    t.server.put('c')
    await t.has('a@101', 'b@102', 'c@103')
    expect(t.counts).toMatchObject({ lists: 2 })
  })

  test('a refresh during a pause does not wait for its end, and goes on until it has succeeded', async () => {
    const t = await setUp({ before: server => server.put('a') })
    await t.watching()
    t.server.endWatches('cut')
    await t.clock.untilSleepers(1)
    t.server.silently(() => t.server.put('b'))
    t.server.next('watch', r => r.json(500, statusBody(500, 'InternalError', 'etcd')))
    const fresh = t.reflector.refresh(AbortSignal.timeout(5_000))
    await vi.waitFor(() => expect(t.counts['error Unavailable']).toBeGreaterThanOrEqual(2))
    await t.pause(60_000)
    await fresh
    await t.has('a@101', 'b@102')
  })

  test('a kick ends a pause of our own, not one that the server has asked for', async () => {
    const t = await setUp({ before: server => server.put('a') })
    await t.watching()
    t.server.next('watch', r => r.json(500, statusBody(500, 'InternalError', 'etcd')))
    t.server.endWatches('cut')
    await t.clock.untilSleepers(1)
    await vi.waitFor(() => {
      t.reflector.kick()
      expect(t.server.watchers()).toBe(1)
    })
    const throttled = statusBody(429, 'TooManyRequests', 'busy')
    for (let i = 0; i < 3; i++) t.server.next('watch', r => r.json(429, throttled, { 'retry-after': '7' }))
    t.server.endWatches('cut')
    await vi.waitFor(() => expect(t.logged.at(-1)).toContain('watch failed'))
    const watches = t.counts['watches'] ?? 0
    for (let i = 0; i < 10; i++) {
      t.reflector.kick()
      await new Promise(resolve => setImmediate(resolve))
    }
    expect(t.counts['watches']).toBeLessThanOrEqual(watches + 1)
  })
})
