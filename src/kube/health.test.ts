import { afterEach, describe, expect, test, vi } from 'vitest'
import { createFakeClock, systemClock } from './clock.ts'
import {
  createHealthServer,
  createMetricsServer,
  eventLoopCheck,
  freshCheck,
  type HealthServerOptions,
  type HttpServer,
  openAll,
  queueCheck,
  syncedCheck,
} from './health.ts'
import { silentLog } from './log.ts'
import { createMetrics } from './metrics.ts'
import { createQueue } from './queue.ts'

const servers: HttpServer[] = []
afterEach(async () => {
  for (const server of servers.splice(0)) await server.close()
})

const start = async (options: Partial<HealthServerOptions> = {}) => {
  const server = await createHealthServer({
    port: 0,
    host: '127.0.0.1',
    live: {},
    ready: {},
    clock: systemClock,
    log: silentLog,
    ...options,
  })
  servers.push(server)
  return async (path: string, init?: RequestInit) => {
    const response = await fetch(`http://127.0.0.1:${server.port}${path}`, {
      ...init,
      headers: { connection: 'close' },
    })
    return { status: response.status, body: await response.text() }
  }
}

describe('health', () => {
  test('is well when every check is', async () => {
    const get = await start({ live: { loop: () => undefined }, ready: { caches: async () => undefined } })
    expect(await get('/healthz')).toEqual({ status: 200, body: 'ok' })
    expect(await get('/readyz?verbose')).toEqual({
      status: 200,
      body: '[+]caches ok\nreadyz check passed\n',
    })
  })

  test('names what fails, and only where it belongs', async () => {
    const get = await start({
      live: { loop: () => undefined },
      ready: {
        caches: () => 'not synced yet: pods',
        api: async () => {
          throw new Error('connection refused')
        },
        key: () => undefined,
      },
    })
    expect((await get('/healthz')).status).toBe(200)
    expect(await get('/readyz')).toEqual({
      status: 503,
      body: '[-]caches failed: not synced yet: pods\n[-]api failed: connection refused\n[+]key ok\nreadyz check failed\n',
    })
    expect((await get('/readyz?exclude=caches&exclude=api')).status).toBe(200)
    expect((await get('/readyz/key')).status).toBe(200)
    expect((await get('/readyz/api')).status).toBe(503)
    expect((await get('/readyz/nothing')).status).toBe(404)
  })

  test('a check that hangs has failed', async () => {
    const get = await start({ live: { hung: () => new Promise(() => {}) }, checkTimeoutMs: 20 })
    expect(await get('/healthz')).toEqual({
      status: 503,
      body: '[-]hung failed: no answer within 20 ms\nhealthz check failed\n',
    })
  })

  test('tells the log when something changes, not at every question', async () => {
    const lines: string[] = []
    let problem: string | undefined
    const log = {
      ...silentLog,
      warn: (_: unknown, message: string) => void lines.push(message),
      info: (_: unknown, message: string) => void lines.push(message),
    }
    const get = await start({ live: { a: () => problem }, log })
    await get('/healthz')
    problem = 'bad'
    await get('/healthz')
    await get('/healthz')
    problem = undefined
    await get('/healthz')
    expect(lines).toEqual(['unhealthy', 'healthy again'])
  })

  test('answers nothing else', async () => {
    const get = await start()
    expect((await get('/')).status).toBe(404)
    expect((await get('/healthzz')).status).toBe(404)
    expect((await get('/healthz', { method: 'POST' })).status).toBe(405)
    expect(await get('/healthz', { method: 'HEAD' })).toEqual({ status: 200, body: '' })
  })

  test('closing lets a running request finish and frees the port', async () => {
    const slow = Promise.withResolvers<undefined>()
    const get = await start({ ready: { slow: () => slow.promise } })
    const [server] = servers.splice(0)
    const answer = get('/readyz')
    // The first request has arrived once a second, later one has been answered.
    await get('/healthz')
    const closed = server?.close()
    slow.resolve(undefined)
    expect((await answer).status).toBe(200)
    await closed
    await expect(get('/healthz')).rejects.toThrow()
    servers.push(
      await createHealthServer({
        port: server?.port ?? 0,
        host: '127.0.0.1',
        live: {},
        ready: {},
        clock: systemClock,
        log: silentLog,
      }),
    )
  })

  test('a port that is taken is an error at the start', async () => {
    await start()
    await expect(start({ port: servers[0]?.port ?? 0 })).rejects.toThrow('EADDRINUSE')
  })

  test('metrics are served as Prometheus reads them', async () => {
    const { registry, election } = createMetrics()
    election.leading?.('x', true)
    const server = await createMetricsServer({ port: 0, host: '127.0.0.1', registry, log: silentLog })
    servers.push(server)
    const response = await fetch(`http://127.0.0.1:${server.port}/metrics`)
    expect(response.headers.get('content-type')).toContain('text/plain')
    expect(await response.text()).toContain('leader_election_master_status{name="x"} 1')
    expect((await fetch(`http://127.0.0.1:${server.port}/`)).status).toBe(404)
  })
})

describe('checks', () => {
  test('the event loop', async () => {
    using check = eventLoopCheck(150)
    const turn = () => new Promise(resolve => setTimeout(resolve, 60))
    await turn()
    check()
    // A check measures again only once the timer of the monitor has run, which a busy machine delays.
    await vi.waitFor(
      async () => {
        await turn()
        const until = performance.now() + 400
        while (performance.now() < until);
        await turn()
        expect(check()).toMatch(/blocked for \d+ ms/)
      },
      { timeout: 10_000 },
    )
  })

  test('a pass that hangs', async () => {
    const clock = createFakeClock()
    const queue = createQueue({ clock, name: 'q' })
    const check = queueCheck(queue, 60_000)
    queue.add('a')
    await queue.take()
    await clock.advance(60_000)
    expect(check()).toBeUndefined()
    await clock.advance(1000)
    expect(check()).toBe('a pass has been running for 61 s')
    queue.done('a')
    expect(check()).toBeUndefined()
  })

  test('caches', () => {
    let synced = false
    const check = syncedCheck({ pods: { hasSynced: () => true }, sets: { hasSynced: () => synced } })
    expect(check()).toBe('not synced yet: sets')
    synced = true
    expect(check()).toBeUndefined()
  })
})

test('a cache that has heard nothing for too long is not ready', () => {
  let ageMs = 90_000
  const check = freshCheck({ pods: { newsAgeMs: () => ageMs }, sets: { newsAgeMs: () => 0 } }, 120_000)
  expect(check()).toBeUndefined()
  ageMs = 120_001
  expect(check()).toBe('no update for too long: pods')
})

test('where one port is taken the other server is closed again', async () => {
  const options = { port: 0, host: '127.0.0.1', live: {}, ready: {}, clock: systemClock, log: silentLog }
  const first = await createHealthServer(options)
  servers.push(first)
  const other = createHealthServer(options)
  const failed = openAll([other, createHealthServer({ ...options, port: first.port })])
  await expect(failed).rejects.toThrow('EADDRINUSE')
  await expect(fetch(`http://127.0.0.1:${(await other).port}/healthz`)).rejects.toThrow()
})
