import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { type Api, createApi } from './api.ts'
import { createFakeClock } from './clock.ts'
import type { Connection } from './connection.ts'
import { pods } from './resources.ts'
import { errorOf, pod, startApi, web } from './testing/api.ts'
import { statusBody } from './testing/http-server.ts'

/** Lets every pause pass at once, until `done` settles. */
async function skipPauses(clock: ReturnType<typeof createFakeClock>, done: Promise<unknown>, ms: number) {
  let over = false
  const end = () => {
    over = true
  }
  done.then(end, end)
  while (!over) {
    // The first sleeper is the call's deadline; a second one is a pause.
    if (clock.sleepers() > 1) await clock.advance(ms)
    await new Promise(resolve => setImmediate(resolve))
  }
}

describe('repetition', () => {
  test('429 is repeated for a create too, after as long as the server asks', async () => {
    const clock = createFakeClock()
    const { server, api } = await startApi(
      (request, nth) =>
        nth < 3
          ? request.json(429, statusBody(429, 'TooManyRequests', 'slow down'), { 'retry-after': '3' })
          : request.json(201, pod),
      { clock },
    )
    const creating = api.create(pods, pod)
    await clock.untilSleepers(2)
    await clock.advance(2_999)
    expect(server.received).toHaveLength(1)
    await skipPauses(clock, creating, 3_300)
    expect(await creating).toEqual(pod)
    expect(server.received).toHaveLength(3)
  })

  test('is bounded, and the last error comes through', async () => {
    const clock = createFakeClock()
    const { server, api } = await startApi(
      request => request.json(429, statusBody(429, 'TooManyRequests', 'no'), { 'retry-after': '1' }),
      { clock },
    )
    const getting = errorOf(api.get(pods, web))
    await skipPauses(clock, getting, 1_100)
    expect(await getting).toMatchObject({ code: 'Throttled', retryAfterMs: 1_000, ambiguous: false })
    expect(server.received).toHaveLength(5)
  })

  test('does not wait for longer than the call may last', async () => {
    const { server, api } = await startApi(request =>
      request.json(503, statusBody(503, 'ServiceUnavailable', 'later'), { 'retry-after': '60' }),
    )
    expect(await errorOf(api.get(pods, web, { timeoutMs: 5_000 }))).toMatchObject({
      code: 'Unavailable',
      retryAfterMs: 60_000,
    })
    expect(server.received).toHaveLength(1)
  })

  const writes: [string, (api: Api) => Promise<unknown>, 'once' | 'again'][] = [
    ['a create', api => api.create(pods, pod), 'once'],
    ['a merge patch', api => api.patch(pods, web, { type: 'merge', body: {} }), 'once'],
    ['a replace', api => api.replace(pods, web, pod), 'once'],
    ['a delete by name', api => api.delete(pods, web), 'once'],
    ['a delete by uid', api => api.delete(pods, web, { uid: 'u' }), 'again'],
    [
      'an apply',
      api => api.patch(pods, web, { type: 'apply', body: { metadata: { name: 'web' } } }),
      'again',
    ],
    [
      'an apply of a version',
      api => api.patch(pods, web, { type: 'apply', body: { metadata: { resourceVersion: '1' } } }),
      'once',
    ],
    [
      'an unknown request',
      api => api.request('POST', '/api/v1/namespaces/a/pods/b/eviction', { body: {} }),
      'once',
    ],
  ]
  test.each(writes)('%s whose answer is lost', async (_, write, times) => {
    const { server, api } = await startApi((request, nth) =>
      nth === 1 ? request.cut() : request.json(200, pod),
    )
    if (times === 'again') {
      await write(api)
      expect(server.received).toHaveLength(2)
      return
    }
    // The server received the request, so it may have executed it: only the caller can find out.
    expect(await errorOf(write(api))).toMatchObject({ code: 'Unavailable', ambiguous: true })
    expect(server.received).toHaveLength(1)
  })

  test('a server that cannot be reached leaves no doubt', async () => {
    const { server, api } = await startApi(() => {})
    await server.close()
    expect(await errorOf(api.create(pods, pod))).toMatchObject({ code: 'Unavailable', ambiguous: false })
  })

  test('an unknown certificate is not trusted, and leaves no doubt', async () => {
    const { server } = await startApi(request => request.json(200, pod), { tls: true })
    const connection = { ...server.connection, credentials: async () => ({ headers: {}, tls: {} }) }
    const api = createApi({ connection })
    onTestFinished(() => api.close())
    const error = await errorOf(api.create(pods, pod))
    expect(error).toMatchObject({ code: 'Unavailable', ambiguous: false, message: /certificate/ })
    expect(server.received).toHaveLength(0)
  })

  test('a 401 leads to fresh credentials, once', async () => {
    const { server } = await startApi(request =>
      request.headers.authorization === 'Bearer 2'
        ? request.json(200, pod)
        : request.json(401, statusBody(401, 'Unauthorized', 'who?')),
    )
    let token = 1
    const connection: Connection = {
      ...server.connection,
      credentials: async () => ({ headers: { authorization: `Bearer ${token}` }, tls: {} }),
      invalidate: () => {
        token += 1
      },
    }
    const api = createApi({ connection })
    onTestFinished(() => api.close())
    expect(await api.get(pods, web)).toEqual(pod)
    token = 3
    expect((await errorOf(api.get(pods, web))).code).toBe('Unauthorized')
    expect(server.received).toHaveLength(4)
  })

  test('renewed TLS material means new connections, the same material does not', async () => {
    const { server } = await startApi(request => request.json(200, pod))
    let tls = {}
    const connection = { ...server.connection, credentials: async () => ({ headers: {}, tls }) }
    const api = createApi({ connection })
    onTestFinished(() => api.close())
    for (let i = 0; i < 5; i++) await api.get(pods, web)
    const before = server.accepted()
    expect(before).toBeLessThanOrEqual(2)
    tls = { servername: 'renewed' }
    await api.get(pods, web)
    expect(server.accepted()).toBe(before + 1)
    await vi.waitFor(() => expect(server.open()).toBe(1))
  })
})

describe('time', () => {
  test('a server that never answers costs the timeout, and a write stays ambiguous', async () => {
    const { api } = await startApi(() => {})
    const [read, write] = await Promise.all([
      errorOf(api.get(pods, web, { timeoutMs: 50 })),
      errorOf(api.create(pods, pod, { timeoutMs: 50 })),
    ])
    expect(read).toMatchObject({ code: 'Timeout', ambiguous: false })
    expect(write).toMatchObject({ code: 'Timeout', ambiguous: true })
  })

  test('a half-read answer is covered by the timeout too', async () => {
    const { api } = await startApi(({ response }) => {
      response.writeHead(200, { 'content-length': '100' })
      response.write('{')
    })
    expect((await errorOf(api.get(pods, web, { timeoutMs: 50 }))).code).toBe('Timeout')
  })

  test('credentials that do not come are covered too, and nothing was sent', async () => {
    const { server } = await startApi(request => request.json(200, pod))
    const api = createApi({ connection: { ...server.connection, credentials: () => new Promise(() => {}) } })
    onTestFinished(() => api.close())
    expect(await errorOf(api.create(pods, pod, { timeoutMs: 50 }))).toMatchObject({
      code: 'Timeout',
      ambiguous: false,
    })
  })

  test('the caller can leave at any time', async () => {
    const { server, api } = await startApi(() => {})
    const leave = new AbortController()
    const getting = errorOf(api.get(pods, web, { signal: leave.signal }))
    await vi.waitFor(() => expect(server.received).toHaveLength(1))
    leave.abort(new Error('enough'))
    expect(await getting).toMatchObject({ code: 'Aborted', message: 'get pods default/web: enough' })
    const early = await errorOf(api.create(pods, pod, { signal: leave.signal }))
    expect(early).toMatchObject({ code: 'Aborted', ambiguous: false })
    expect(server.received).toHaveLength(1)
  })

  test('a pause ends when the caller leaves', async () => {
    const { api } = await startApi(request => request.json(429, {}, { 'retry-after': '20' }))
    const getting = errorOf(api.get(pods, web, { signal: AbortSignal.timeout(50) }))
    expect((await getting).code).toBe('Aborted')
  })
})
