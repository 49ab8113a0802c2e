import { describe, expect, test, vi } from 'vitest'
import { pods } from './resources.ts'
import { errorOf, startApi } from './testing/api.ts'
import { collect } from './testing/collect.ts'
import { type Received, statusBody } from './testing/http-server.ts'

describe('watch', () => {
  const line = (type: string, name: string, version: string) =>
    `${JSON.stringify({ type, object: { metadata: { name, resourceVersion: version } } })}\n`

  test('events, bookmarks, and a proper end', async () => {
    const { server, api } = await startApi(({ response }) => {
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
    const { api } = await startApi(({ response }) => {
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
    const { api } = await startApi(request =>
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
    const { api } = await startApi(request => {
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
    const { server, api } = await startApi(({ response }, nth) => {
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
    const { server, api } = await startApi(({ response }) => {
      response.write(line('ADDED', 'a', '1'))
    })
    for await (const event of api.watch(pods, {})) {
      expect(event.type).toBe('ADDED')
      break
    }
    await vi.waitFor(() => expect(server.open()).toBe(0))
  })

  test('the timeout is for the headers alone', async () => {
    const { api } = await startApi(({ response, url }) => {
      if (url.searchParams.get('labelSelector') === 'never') return
      response.writeHead(200).flushHeaders()
      setTimeout(() => response.end(line('ADDED', 'a', '1')), 5_100)
    })
    expect(
      (await errorOf(collect(api.watch(pods, { labelSelector: 'never' }, { timeoutMs: 50 })))).code,
    ).toBe('Timeout')
    expect(await collect(api.watch(pods, {}, { timeoutMs: 5_000 }))).toHaveLength(1)
  })
})

test('an error page without end is not read to its end', async () => {
  const { api } = await startApi(({ response }) => {
    response.writeHead(502)
    const pump = () => {
      while (response.write('x'.repeat(65_536)));
      response.once('drain', pump)
    }
    pump()
  })
  expect(await errorOf(collect(api.watch(pods, {})))).toMatchObject({ code: 'Unavailable', status: 502 })
})
