import { createServer } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { createApi } from './api.ts'
import { hasCause, type KubeError } from './errors.ts'
import type { RequestObservation } from './metrics-hooks.ts'
import { nodes, pods } from './resources.ts'
import { errorOf, pod, startApi, web } from './testing/api.ts'
import { collect } from './testing/collect.ts'
import { startTestServer, statusBody } from './testing/http-server.ts'

describe('requests', () => {
  test('say what the API server expects', async () => {
    const { server, api } = await startApi(request => request.json(200, pod))
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
    const { server, api } = await startApi(request => request.json(200, pod), { tls: true })
    for (let i = 0; i < 20; i++) await api.delete(pods, web, { uid: 'u', gracePeriodSeconds: 0 })
    // A second connection is allowed, because a connection rests for a turn of the event loop after an answer.
    expect(server.accepted()).toBeLessThanOrEqual(2)
  })

  test('200 in a row use one TLS connection, 300 at once no more than the pool has', async () => {
    const { server, api } = await startApi(request => request.json(200, pod), { tls: true, connections: 16 })
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
    onTestFinished(() => new Promise(resolve => proxy.close(() => resolve())))
    const { server } = await startApi(
      request => (request.url.searchParams.has('watch') ? request.response.end() : request.json(200, pod)),
      { tls: true },
    )
    const proxyUrl = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`
    const api = createApi({ connection: { ...server.connection, proxyUrl } })
    onTestFinished(() => api.close())
    expect(await api.get(pods, web)).toEqual(pod)
    expect(await collect(api.watch(pods, {}))).toEqual([])
    expect(tunnels).toEqual([1, 2].map(() => new URL(server.connection.server).host))
  })

  test('a watch neither waits for requests nor makes them wait', async () => {
    const { api } = await startApi(
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
    const { api } = await startApi(
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
    const { api } = await startApi(request => request.json(status, statusBody(status, reason, 'because')))
    const error = await errorOf(api.create(pods, pod))
    expect(error).toMatchObject({ code, status, message: 'create pods default/web: because' })
    // A server error may have come after the commit; a refusal has not.
    expect(error.ambiguous).toBe(status >= 500)
  })

  test('causes are readable', async () => {
    const details = {
      causes: [{ reason: 'NamespaceTerminating', message: 'x', field: 'metadata.namespace' }],
    }
    const { api } = await startApi(request => request.json(403, statusBody(403, 'Forbidden', 'no', details)))
    expect(hasCause(await errorOf(api.create(pods, pod)), 'NamespaceTerminating')).toBe(true)
  })

  test('an answer that is no Status is named by its first line', async () => {
    const { api } = await startApi(({ response }) => {
      response.writeHead(403, { 'content-type': 'text/html' })
      response.end('<html>a proxy</html>\nmore')
    })
    expect(await errorOf(api.get(pods, web))).toMatchObject({
      code: 'Forbidden',
      message: /a proxy<\/html>$/,
    })
  })

  test('an answer that is not JSON is an error', async () => {
    const { api } = await startApi(({ response }) => response.end('ok'))
    expect((await errorOf(api.get(pods, web))).code).toBe('Unknown')
  })

  test('a closed client refuses calls and ends watches', async () => {
    const { server, api } = await startApi(({ response }) => response.writeHead(200).flushHeaders())
    const watching = errorOf(collect(api.watch(pods, {})))
    const getting = errorOf(api.get(pods, web))
    await vi.waitFor(() => expect(server.received).toHaveLength(2))
    await api.close()
    expect((await watching).code).toBe('Aborted')
    expect((await getting).code).toBe('Aborted')
    expect((await errorOf(api.get(pods, web))).code).toBe('Aborted')
  })
})

test('says once when the server can be reached again', async () => {
  let isDown = false
  const server = await startTestServer(({ json, cut }) => (isDown ? cut() : json(200, { metadata: {} })))
  let times = 0
  const api = createApi({ connection: server.connection, onReachable: () => times++ })
  const ask = (timeoutMs = 10_000) =>
    api.get(pods, { namespace: 'ns', name: 'a' }, { timeoutMs }).catch(() => {})
  await ask()
  isDown = true
  await ask(50)
  await ask(50)
  isDown = false
  expect(times).toBe(0)
  await ask()
  await ask()
  expect(times).toBe(1)
  await api.close()
  await server.close()
})
