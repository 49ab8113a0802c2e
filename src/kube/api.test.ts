import { createServer } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { type Api, type ApiOptions, createApi } from './api.ts'
import { createFakeClock } from './clock.ts'
import type { Connection } from './connection.ts'
import { hasCause, KubeError } from './errors.ts'
import type { RequestObservation } from './metrics-hooks.ts'
import { seededRandom } from './random.ts'
import { nodes, pods } from './resources.ts'
import { collect } from './testing/collect.ts'
import { type Received, startTestServer, statusBody } from './testing/http-server.ts'

const cleanups: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup()
})

async function setUp(
  handle: (request: Received, nth: number) => unknown,
  options: { tls?: boolean } & Partial<ApiOptions> = {},
) {
  const server = await startTestServer(handle, options)
  const api = createApi({
    connection: server.connection,
    userAgent: 'kit-test/1',
    random: seededRandom(1),
    ...options,
  })
  cleanups.push(
    () => server.close(),
    () => api.close(),
  )
  return { server, api }
}

const web = { namespace: 'default', name: 'web' }
const pod = { metadata: { name: 'web', namespace: 'default', uid: 'u', resourceVersion: '7' } }

async function errorOf(promise: Promise<unknown>): Promise<KubeError> {
  const error = await promise.then(
    () => undefined,
    (caught: unknown) => caught,
  )
  expect(error).toBeInstanceOf(KubeError)
  return error as KubeError
}

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

describe('requests', () => {
  test('say what the API server expects', async () => {
    const { server, api } = await setUp(request => request.json(200, pod))
    await api.get(pods, web)
    await api.get(nodes, { name: 'n1' })
    await api.create(pods, { metadata: { name: 'web', namespace: 'default' } })
    await api.patch(pods, web, { type: 'merge', body: {} }, { subresource: 'status' })
    await api.patch(pods, web, { type: 'json', body: [] })
    await api.patch(pods, web, { type: 'strategic', body: {} })
    await api.patch(pods, web, { type: 'apply', body: {} }, { force: true, fieldManager: 'me', dryRun: true })
    await api.replace(pods, web, pod)
    await api.delete(pods, web, { uid: 'u', gracePeriodSeconds: 0 })
    await api.list(pods, { namespace: 'a', labelSelector: 'type in (primary)', limit: 5 })

    expect(server.received.map(r => `${r.method} ${r.url.pathname}${r.url.search}`)).toEqual([
      'GET /api/v1/namespaces/default/pods/web',
      'GET /api/v1/nodes/n1',
      'POST /api/v1/namespaces/default/pods?fieldManager=kit-test',
      'PATCH /api/v1/namespaces/default/pods/web/status?fieldManager=kit-test',
      'PATCH /api/v1/namespaces/default/pods/web?fieldManager=kit-test',
      'PATCH /api/v1/namespaces/default/pods/web?fieldManager=kit-test',
      'PATCH /api/v1/namespaces/default/pods/web?fieldManager=me&force=true&dryRun=All',
      'PUT /api/v1/namespaces/default/pods/web?fieldManager=kit-test',
      'DELETE /api/v1/namespaces/default/pods/web',
      'GET /api/v1/namespaces/a/pods?labelSelector=type+in+%28primary%29&limit=5',
    ])
    expect(server.received.map(r => r.headers['content-type'])).toEqual([
      undefined,
      undefined,
      'application/json',
      'application/merge-patch+json',
      'application/json-patch+json',
      'application/strategic-merge-patch+json',
      'application/apply-patch+yaml',
      'application/json',
      'application/json',
      undefined,
    ])
    expect(JSON.parse(server.received[8]?.body ?? '')).toEqual({
      apiVersion: 'v1',
      kind: 'DeleteOptions',
      preconditions: { uid: 'u' },
      gracePeriodSeconds: 0,
    })
    for (const { headers } of server.received) {
      expect(headers['user-agent']).toBe('kit-test/1')
      expect(headers.authorization).toBe('Bearer test')
    }
  })

  test('deletes with preconditions leave their connections open for what comes next', async () => {
    const { server, api } = await setUp(request => request.json(200, pod), { tls: true })
    for (let i = 0; i < 20; i++) await api.delete(pods, web, { uid: 'u', gracePeriodSeconds: 0 })
    // A second connection is allowed, because a connection rests for a turn of the event loop after an answer.
    expect(server.accepted()).toBeLessThanOrEqual(2)
  })

  test('200 in a row use one TLS connection, 300 at once no more than the pool has', async () => {
    const { server, api } = await setUp(request => request.json(200, pod), { tls: true, connections: 16 })
    for (let i = 0; i < 200; i++) {
      await api.get(pods, web)
      // An idle connection stays open.
      if (i === 100) await new Promise(resolve => setTimeout(resolve, 30))
    }
    expect(server.accepted()).toBeLessThanOrEqual(2)
    await Promise.all(Array.from({ length: 300 }, () => api.get(pods, web)))
    expect(server.accepted()).toBeLessThanOrEqual(17)
    expect(server.received).toHaveLength(500)
  })

  test('an HTTP proxy is gone through, for requests and watches', async () => {
    const tunnels: string[] = []
    const proxy = createServer().on('connect', (request, socket) => {
      tunnels.push(request.url ?? '')
      const [host, port] = (request.url ?? '').split(':')
      const beyond = connect(Number(port), host, () => {
        socket.write('HTTP/1.1 200 Connection Established\r\n\r\n')
        socket.pipe(beyond).pipe(socket)
      })
      for (const end of [socket, beyond]) end.on('error', () => {})
    })
    await new Promise<void>(resolve => proxy.listen(0, '127.0.0.1', resolve))
    cleanups.push(() => new Promise(resolve => proxy.close(() => resolve())))
    const { server } = await setUp(
      request => (request.url.searchParams.has('watch') ? request.response.end() : request.json(200, pod)),
      { tls: true },
    )
    const proxyUrl = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`
    const api = createApi({ connection: { ...server.connection, proxyUrl } })
    cleanups.push(() => api.close())
    expect(await api.get(pods, web)).toEqual(pod)
    expect(await collect(api.watch(pods, {}))).toEqual([])
    expect(tunnels).toEqual([1, 2].map(() => new URL(server.connection.server).host))
  })

  test('a watch neither waits for requests nor makes them wait', async () => {
    const { api } = await setUp(
      request => {
        if (request.url.searchParams.has('watch')) request.response.writeHead(200).flushHeaders()
        else request.json(200, pod)
      },
      { connections: 1 },
    )
    const stop = new AbortController()
    const watching = Array.from({ length: 3 }, () => collect(api.watch(pods, {}, { signal: stop.signal })))
    expect(await api.get(pods, web)).toEqual(pod)
    stop.abort()
    for (const watch of watching) expect((await errorOf(watch)).code).toBe('Aborted')
  })

  test('each try is measured', async () => {
    const seen: RequestObservation[] = []
    const retries: string[] = []
    const { api } = await setUp(
      (request, nth) => (nth === 1 ? request.cut() : request.json(nth === 2 ? 500 : 200, pod)),
      { metrics: { request: o => seen.push(o), retry: o => retries.push(o.code) } },
    )
    await api.get(pods, web)
    expect(seen.map(o => [o.verb, o.method, o.resource, o.code])).toEqual([
      ['get', 'GET', 'pods', '<error>'],
      ['get', 'GET', 'pods', '500'],
      ['get', 'GET', 'pods', '200'],
    ])
    expect(retries).toEqual(['Unavailable', 'Unavailable'])
    expect(seen.every(o => o.seconds >= 0)).toBe(true)
  })
})

describe('errors', () => {
  const cases: [number, string, KubeError['code']][] = [
    [400, 'BadRequest', 'BadRequest'],
    [401, 'Unauthorized', 'Unauthorized'],
    [403, 'Forbidden', 'Forbidden'],
    [404, 'NotFound', 'NotFound'],
    [409, 'AlreadyExists', 'AlreadyExists'],
    [409, 'Conflict', 'Conflict'],
    [410, 'Expired', 'Gone'],
    [413, 'RequestEntityTooLarge', 'BadRequest'],
    [418, '', 'Unknown'],
    [422, 'Invalid', 'Invalid'],
    [500, 'InternalError', 'Unavailable'],
    [504, 'Timeout', 'Timeout'],
  ]
  test.each(cases)('%i %s is %s', async (status, reason, code) => {
    const { api } = await setUp(request => request.json(status, statusBody(status, reason, 'because')))
    const error = await errorOf(api.create(pods, pod))
    expect(error).toMatchObject({ code, status, message: 'create pods default/web: because' })
    // A server error may have come after the commit; a refusal has not.
    expect(error.ambiguous).toBe(status >= 500)
  })

  test('causes are readable', async () => {
    const details = {
      causes: [{ reason: 'NamespaceTerminating', message: 'x', field: 'metadata.namespace' }],
    }
    const { api } = await setUp(request => request.json(403, statusBody(403, 'Forbidden', 'no', details)))
    expect(hasCause(await errorOf(api.create(pods, pod)), 'NamespaceTerminating')).toBe(true)
  })

  test('an answer that is no Status is named by its first line', async () => {
    const { api } = await setUp(({ response }) => {
      response.writeHead(403, { 'content-type': 'text/html' })
      response.end('<html>a proxy</html>\nmore')
    })
    expect(await errorOf(api.get(pods, web))).toMatchObject({
      code: 'Forbidden',
      message: /a proxy<\/html>$/,
    })
  })

  test('an answer that is not JSON is an error', async () => {
    const { api } = await setUp(({ response }) => response.end('ok'))
    expect((await errorOf(api.get(pods, web))).code).toBe('Unknown')
  })

  test('a closed client refuses calls and ends watches', async () => {
    const { server, api } = await setUp(({ response }) => response.writeHead(200).flushHeaders())
    const watching = errorOf(collect(api.watch(pods, {})))
    const getting = errorOf(api.get(pods, web))
    await vi.waitFor(() => expect(server.received).toHaveLength(2))
    await api.close()
    expect((await watching).code).toBe('Aborted')
    expect((await getting).code).toBe('Aborted')
    expect((await errorOf(api.get(pods, web))).code).toBe('Aborted')
  })
})

describe('repetition', () => {
  test('429 is repeated for a create too, after as long as the server asks', async () => {
    const clock = createFakeClock()
    const { server, api } = await setUp(
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
    const { server, api } = await setUp(
      request => request.json(429, statusBody(429, 'TooManyRequests', 'no'), { 'retry-after': '1' }),
      { clock },
    )
    const getting = errorOf(api.get(pods, web))
    await skipPauses(clock, getting, 1_100)
    expect(await getting).toMatchObject({ code: 'Throttled', retryAfterMs: 1_000, ambiguous: false })
    expect(server.received).toHaveLength(5)
  })

  test('does not wait for longer than the call may last', async () => {
    const { server, api } = await setUp(request =>
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
    const { server, api } = await setUp((request, nth) =>
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
    const { server, api } = await setUp(() => {})
    await server.close()
    expect(await errorOf(api.create(pods, pod))).toMatchObject({ code: 'Unavailable', ambiguous: false })
  })

  test('an unknown certificate is not trusted, and leaves no doubt', async () => {
    const { server } = await setUp(request => request.json(200, pod), { tls: true })
    const connection = { ...server.connection, credentials: async () => ({ headers: {}, tls: {} }) }
    const api = createApi({ connection })
    cleanups.push(() => api.close())
    const error = await errorOf(api.create(pods, pod))
    expect(error).toMatchObject({ code: 'Unavailable', ambiguous: false, message: /certificate/ })
    expect(server.received).toHaveLength(0)
  })

  test('a 401 leads to fresh credentials, once', async () => {
    const { server } = await setUp(request =>
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
    cleanups.push(() => api.close())
    expect(await api.get(pods, web)).toEqual(pod)
    token = 3
    expect((await errorOf(api.get(pods, web))).code).toBe('Unauthorized')
    expect(server.received).toHaveLength(4)
  })

  test('renewed TLS material means new connections, the same material does not', async () => {
    const { server } = await setUp(request => request.json(200, pod))
    let tls = {}
    const connection = { ...server.connection, credentials: async () => ({ headers: {}, tls }) }
    const api = createApi({ connection })
    cleanups.push(() => api.close())
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
    const { api } = await setUp(() => {})
    const [read, write] = await Promise.all([
      errorOf(api.get(pods, web, { timeoutMs: 50 })),
      errorOf(api.create(pods, pod, { timeoutMs: 50 })),
    ])
    expect(read).toMatchObject({ code: 'Timeout', ambiguous: false })
    expect(write).toMatchObject({ code: 'Timeout', ambiguous: true })
  })

  test('a half-read answer is covered by the timeout too', async () => {
    const { api } = await setUp(({ response }) => {
      response.writeHead(200, { 'content-length': '100' })
      response.write('{')
    })
    expect((await errorOf(api.get(pods, web, { timeoutMs: 50 }))).code).toBe('Timeout')
  })

  test('credentials that do not come are covered too, and nothing was sent', async () => {
    const { server } = await setUp(request => request.json(200, pod))
    const api = createApi({ connection: { ...server.connection, credentials: () => new Promise(() => {}) } })
    cleanups.push(() => api.close())
    expect(await errorOf(api.create(pods, pod, { timeoutMs: 50 }))).toMatchObject({
      code: 'Timeout',
      ambiguous: false,
    })
  })

  test('the caller can leave at any time', async () => {
    const { server, api } = await setUp(() => {})
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
    const { api } = await setUp(request => request.json(429, {}, { 'retry-after': '20' }))
    const getting = errorOf(api.get(pods, web, { signal: AbortSignal.timeout(50) }))
    expect((await getting).code).toBe('Aborted')
  })
})

describe('watch', () => {
  const line = (type: string, name: string, version: string) =>
    `${JSON.stringify({ type, object: { metadata: { name, resourceVersion: version } } })}\n`

  test('events, bookmarks, and a proper end', async () => {
    const { server, api } = await setUp(({ response }) => {
      response.write(line('ADDED', 'a', '1') + line('MODIFIED', 'a', '2'))
      response.end(
        line('BOOKMARK', '', '9') +
          `${JSON.stringify({ type: 'BOOKMARK', object: { metadata: { resourceVersion: '10', annotations: { 'k8s.io/initial-events-end': 'true' } } } })}\n`,
      )
    })
    const events = await collect(
      api.watch(pods, { sendInitialEvents: true, timeoutSeconds: 7, namespace: 'a' }),
    )
    expect(events.map(e => (e.type === 'BOOKMARK' ? e : [e.type, e.object.metadata.name]))).toEqual([
      ['ADDED', 'a'],
      ['MODIFIED', 'a'],
      { type: 'BOOKMARK', resourceVersion: '9', initialEventsEnd: false },
      { type: 'BOOKMARK', resourceVersion: '10', initialEventsEnd: true },
    ])
    expect(Object.fromEntries(server.received[0]?.url.searchParams ?? [])).toEqual({
      watch: 'true',
      allowWatchBookmarks: 'true',
      sendInitialEvents: 'true',
      resourceVersionMatch: 'NotOlderThan',
      timeoutSeconds: '7',
    })
  })

  test('an ERROR event is the error that it describes', async () => {
    const { api } = await setUp(({ response }) => {
      const status = statusBody(410, 'Expired', 'too old resource version: 5 (9)')
      response.end(`${line('ADDED', 'a', '1')}${JSON.stringify({ type: 'ERROR', object: status })}\n`)
    })
    expect(await errorOf(collect(api.watch(pods, {})))).toMatchObject({
      code: 'Gone',
      status: 410,
      reason: 'Expired',
    })
  })

  test('a refusal is the error of its status, whatever else the body says', async () => {
    const { api } = await setUp(request =>
      request.json(429, statusBody(429, 'TooManyRequests', 'later'), { 'retry-after': '2' }),
    )
    expect(await errorOf(collect(api.watch(pods, {})))).toMatchObject({
      code: 'Throttled',
      retryAfterMs: 2_000,
    })
  })

  test.each([
    ['in the middle of a line', (r: Received) => r.response.end('{"type":"ADDED","obj')],
    ['by a reset', (r: Received) => r.cut()],
    ['by a line that is not JSON', (r: Received) => r.response.end('nonsense\n')],
  ])('a stream broken %s is Unavailable', async (_, end) => {
    const { api } = await setUp(request => {
      request.response.write(line('ADDED', 'a', '1'), () => end(request))
    })
    const seen: unknown[] = []
    const watching = (async () => {
      for await (const event of api.watch(pods, {})) seen.push(event)
    })()
    expect((await errorOf(watching)).code).toBe('Unavailable')
    expect(seen).toHaveLength(1)
  })

  test('a silent connection is given up, one with bookmarks is not', async () => {
    const { server, api } = await setUp(({ response }, nth) => {
      response.writeHead(200).flushHeaders()
      if (nth === 1) return
      let sent = 0
      const timer = setInterval(() => {
        sent += 1
        response.write(line('BOOKMARK', '', String(sent)))
        if (sent === 8) {
          clearInterval(timer)
          response.end()
        }
      }, 200)
    })
    expect(await errorOf(collect(api.watch(pods, {}, { idleTimeoutMs: 1_000 })))).toMatchObject({
      code: 'Unavailable',
      message: /silent/,
    })
    expect(await collect(api.watch(pods, {}, { idleTimeoutMs: 1_000 }))).toHaveLength(8)
    expect(server.received).toHaveLength(2)
  })

  test('leaving the loop closes the connection', async () => {
    const { server, api } = await setUp(({ response }) => {
      response.write(line('ADDED', 'a', '1'))
    })
    for await (const event of api.watch(pods, {})) {
      expect(event.type).toBe('ADDED')
      break
    }
    await vi.waitFor(() => expect(server.open()).toBe(0))
  })

  test('the timeout is for the headers alone', async () => {
    const { api } = await setUp(({ response, url }) => {
      if (url.searchParams.get('labelSelector') === 'never') return
      response.writeHead(200).flushHeaders()
      setTimeout(() => response.end(line('ADDED', 'a', '1')), 150)
    })
    expect(
      (await errorOf(collect(api.watch(pods, { labelSelector: 'never' }, { timeoutMs: 50 })))).code,
    ).toBe('Timeout')
    expect(await collect(api.watch(pods, {}, { timeoutMs: 100 }))).toHaveLength(1)
  })
})

test('an error page without end is not read to its end', async () => {
  const { api } = await setUp(({ response }) => {
    response.writeHead(502)
    const pump = () => {
      while (response.write('x'.repeat(65_536)));
      response.once('drain', pump)
    }
    pump()
  })
  expect(await errorOf(collect(api.watch(pods, {})))).toMatchObject({ code: 'Unavailable', status: 502 })
})

test('says once when the server can be reached again', async () => {
  let isDown = false
  const server = await startTestServer(({ json, cut }) => (isDown ? cut() : json(200, { metadata: {} })))
  let times = 0
  const api = createApi({ connection: server.connection, onReachable: () => times++ })
  const ask = () => api.get(pods, { namespace: 'ns', name: 'a' }, { timeoutMs: 50 }).catch(() => {})
  await ask()
  isDown = true
  await ask()
  await ask()
  isDown = false
  expect(times).toBe(0)
  await ask()
  await ask()
  expect(times).toBe(1)
  await api.close()
  await server.close()
})
