import { describe, expect, test, vi } from 'vitest'
import { statusBody } from './testing/http-server.ts'
import { startMirror } from './testing/mirror.ts'

describe('the first snapshot', () => {
  test('streams, is initial, and is followed', async () => {
    const t = await startMirror({ before: server => ['a', 'b'].map(name => server.put(name)) })
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
    const t = await startMirror({
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
    const t = await startMirror({
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
    const t = await startMirror({
      before: server => server.next('watch', ({ response }) => response.writeHead(200).flushHeaders()),
    })
    await expect(t.reflector.synced(AbortSignal.timeout(50))).rejects.toThrow()
    expect(t.reflector.hasSynced()).toBe(false)
  })

  test('that breaks off is not taken for the whole', async () => {
    const t = await startMirror({
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

describe('contents', () => {
  test('a line of 5 MB with letters of every size', async () => {
    const t = await startMirror()
    await t.watching()
    const note = '🎭ß'.repeat(900_000)
    t.server.put('big', { note })
    await t.has('big@101')
    expect(t.store.get('ns/big')?.note).toBe(note)
  })

  test('a character cut in two', async () => {
    const t = await startMirror()
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
      const t = await startMirror({
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
    const t = await startMirror({
      before: server => server.put('a'),
      transform: o => ({ ...o, note: 'mine' }),
    })
    await t.has('a@101')
    expect(t.store.get('ns/a')?.note).toBe('mine')
  })
})

test('a subscriber that throws is counted and stops nothing', async () => {
  const t = await startMirror({ before: server => server.put('a') })
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
  const t = await startMirror({ before: server => server.put('a') })
  expect(t.read()).toMatchObject({ synced: false, objects: 0 })
  await t.watching()
  await t.clock.advance(7_000)
  expect(t.read()).toEqual({ lastEventAgeSeconds: 7, objects: 1, resourceVersion: 101n, synced: true })
  t.server.bookmark()
  await vi.waitFor(() => expect(t.read().lastEventAgeSeconds).toBe(0))
})

test.each([
  ['while it watches', async (t: Awaited<ReturnType<typeof startMirror>>) => t.watching()],
  [
    'while it pauses',
    async (t: Awaited<ReturnType<typeof startMirror>>) => {
      await t.watching()
      t.server.endWatches('cut')
      await t.clock.untilSleepers(1)
    },
  ],
])('ends %s when told to, and only then', async (_, reach) => {
  const t = await startMirror()
  await reach(t)
  expect(t.ended()).toBe(false)
  t.stop.abort()
  await vi.waitFor(() => expect(t.ended()).toBe(true))
  expect(t.server.watchers()).toBe(0)
})

describe('freshness', () => {
  test('a refresh leaves a watch that shows nothing and takes what the server has', async () => {
    const t = await startMirror({ before: server => server.put('a') })
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
    const t = await startMirror({ before: server => server.put('a') })
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
})
