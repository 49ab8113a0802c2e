import { type IncomingHttpHeaders, type OutgoingHttpHeaders, request } from 'node:http'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type DashboardServer, serve } from './server.ts'
import type { DrillRequest } from './wire.ts'

let server: DashboardServer
const drilled: DrillRequest[] = []
let listeners = 0
beforeAll(async () => {
  server = await serve({
    port: 0,
    assets: { script: 'script', style: 'style' },
    feed: {
      subscribe(listener) {
        listeners += 1
        listener('{"first":true}')
        return () => {
          listeners -= 1
        }
      },
    },
    problem: () => undefined,
    drill: async wanted => {
      drilled.push(wanted)
      return { ok: true, text: 'done' }
    },
  })
})
afterAll(() => server.close())

interface Answer {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  /** For a stream, its first part. */
  readonly text: string
}

interface Asked {
  readonly host?: string
  readonly method?: string
  readonly headers?: OutgoingHttpHeaders
  readonly body?: string
  /** The address to connect to. */
  readonly to?: string
}

function ask(
  path: string,
  { host, method = 'GET', headers = {}, body, to = '127.0.0.1' }: Asked = {},
): Promise<Answer> {
  const { port } = server
  return new Promise((resolve, reject) => {
    const sent = request(
      { host: to, port, path, method, headers: { host: host ?? `127.0.0.1:${port}`, ...headers } },
      response => {
        let text = ''
        const done = () => resolve({ status: response.statusCode ?? 0, headers: response.headers, text })
        response.setEncoding('utf8')
        response.on('data', (part: string) => {
          text += part
          if (path !== '/events') return
          done()
          sent.destroy()
        })
        response.once('end', done)
      },
    )
    sent.once('error', reject)
    sent.end(body)
  })
}

/** The headers that the page sends, once it was opened by the printed address. */
const entered = () => ({
  authorization: `Bearer ${new URLSearchParams(new URL(server.address).hash.slice(1)).get('key')}`,
})

describe('D20.guard: who gets in', () => {
  test('the printed address shows its key to the page alone: browsers send no part of it', async () => {
    expect(new URL(server.address).search).toBe('')
    expect(entered().authorization).toMatch(/^Bearer [\w-]{43}$/)
    for (const path of ['/', '/page.js', '/page.css']) {
      const { status, headers, text } = await ask(path)
      expect([status, headers['set-cookie']]).toEqual([200, undefined])
      expect(text).not.toContain(entered().authorization.slice(7))
    }
  })

  test('without the key, nothing but the empty page is served', async () => {
    const key = entered().authorization.slice(7)
    for (const authorization of [
      ...[undefined, '', 'Bearer', 'Bearer ', `Bearer ${'A'.repeat(43)}`, `Bearer ${key.slice(0, -1)}`],
      ...[`Basic ${key}`, key],
    ])
      for (const path of ['/events', '/nowhere', `/?key=${key}`]) {
        const headers = authorization === undefined ? {} : { authorization }
        expect((await ask(path, { headers })).status).toBe(403)
      }
    expect(listeners).toBe(0)
  })

  test('a name that leads to this machine by DNS is refused, with the right cookie and token too', async () => {
    const headers = entered()
    for (const host of [
      'evil.example',
      `evil.example:${server.port}`,
      '127.0.0.1',
      `127.0.0.1:1`,
      `0.0.0.0:${server.port}`,
    ])
      for (const path of ['/', '/events']) expect((await ask(path, { host, headers })).status).toBe(403)
  })

  test('the names of this machine are allowed', async () => {
    const headers = entered()
    for (const host of [`localhost:${server.port}`, `[::1]:${server.port}`])
      expect((await ask('/', { host, headers })).status).toBe(200)
  })

  test('what another site asks is refused', async () => {
    const headers = entered()
    for (const foreign of [
      { origin: 'http://evil.example' },
      { origin: 'null' },
      { origin: `http://127.0.0.1:${server.port + 1}` },
      { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'no-cors' },
      { 'sec-fetch-site': 'same-site', 'sec-fetch-mode': 'cors' },
    ])
      expect((await ask('/events', { headers: { ...headers, ...foreign } })).status).toBe(403)
  })

  test('nothing listens on addresses that others can reach', async () => {
    // Linux routes all of 127.0.0.0/8 to this machine: a server of all addresses would answer here.
    await expect(ask('/', { to: '127.0.0.2' })).rejects.toMatchObject({ code: 'ECONNREFUSED' })
  })

  test('every answer forbids scripts and frames of others, and is not stored', async () => {
    for (const path of ['/', '/nowhere', '/page.js']) {
      const { headers } = await ask(path, { headers: entered() })
      expect(headers['content-security-policy']).toMatch(/^default-src 'none'; script-src 'self';/)
      expect(headers['content-security-policy']).toContain("frame-ancestors 'none'")
      expect(headers['content-security-policy']).not.toContain('unsafe')
      expect(headers).toMatchObject({ 'cache-control': 'no-store', 'x-content-type-options': 'nosniff' })
    }
  })
})

describe('D20.guard: messages and drills', () => {
  const wanted = { namespace: 'shop', set: 'web', slot: 3 }
  const post = async (headers: OutgoingHttpHeaders, body = JSON.stringify(wanted)) =>
    ask('/drill', { method: 'POST', body, headers: { ...entered(), ...headers } })
  const own = () => ({ origin: `http://127.0.0.1:${server.port}` })

  test('messages are lines of JSON, and end with the page', async () => {
    const { headers, text } = await ask('/events', { headers: entered() })
    expect(headers['content-type']).toBe('application/x-ndjson')
    expect(text).toBe('{"first":true}\n')
    await expect.poll(() => listeners).toBe(0)
  })

  test('a drill needs the key, and the origin of the page', async () => {
    const body = JSON.stringify(wanted)
    expect((await ask('/drill', { method: 'POST', body, headers: own() })).status).toBe(403)
    expect((await post({})).status).toBe(403)
    expect((await post({ origin: 'http://127.0.0.1:1' })).status).toBe(403)
    expect(drilled).toEqual([])
    const { status, text } = await post(own())
    expect([status, JSON.parse(text)]).toEqual([200, { ok: true, text: 'done' }])
    expect(drilled.splice(0)).toEqual([wanted])
  })

  test.each([
    '',
    '{}',
    '{"namespace":"a","set":"../b","slot":1}',
    '{"namespace":"a","set":"b","slot":1.5}',
    '[]',
  ])('a drill of %j is refused', async body => {
    expect((await post(own(), body)).status).toBe(400)
    expect(drilled).toEqual([])
  })

  test('only POST drills, and nothing else does anything', async () => {
    const headers = { ...entered(), ...own() }
    expect((await ask('/drill', { headers })).status).toBe(404)
    expect((await ask('/', { headers, method: 'DELETE' })).status).toBe(404)
    expect(drilled).toEqual([])
  })
})
