import { describe, expect, test, vi } from 'vitest'
import { statusBody } from './testing/http-server.ts'
import { startMirror } from './testing/mirror.ts'

describe('after a failure it goes on where it was', () => {
  test.each(['end', 'cut'] as const)('watch ended by %s: no second list, nothing missed', async how => {
    const t = await startMirror({ before: server => server.put('a') })
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
    const t = await startMirror()
    await t.watching()
    t.server.silently(() => t.server.put('a'))
    t.server.raw('{"type":"ADDED","object":{"metadata":{"name":"a","uid":"uid-')
    t.server.endWatches('end')
    await t.pause(2_000)
    await t.has('a@101')
    expect(t.changes).toEqual(['added a uid-a'])
  })

  test('a server that answers 500, 429 or refuses connections for a while', async () => {
    const t = await startMirror({ before: server => server.put('a') })
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
    const t = await startMirror({ before: server => server.put('a') })
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
    const t = await startMirror()
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
    const t = await startMirror()
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
    const t = await startMirror({
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

  test('a kick ends a pause of our own, not one that the server has asked for', async () => {
    const t = await startMirror({ before: server => server.put('a') })
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
