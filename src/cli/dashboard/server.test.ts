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

const invitation = () => new URL(server.address).search
/** Opens the printed address. @returns the headers that a browser sends from then on */
async function entered(): Promise<{ readonly cookie: string }> {
  const { headers } = await ask(`/${invitation()}`)
  return { cookie: String(headers['set-cookie']).split(';')[0] ?? '' }
}

describe('D20.guard: who gets in', () => {
  test('the printed address gives a cookie that other sites cannot send and scripts cannot read', async () => {
    const { status, headers, text } = await ask(`/${invitation()}`)
    expect(status).toBe(200)
    expect(String(headers['set-cookie'])).toMatch(/; HttpOnly; SameSite=Strict; Path=\/$/)
    expect(text).toContain('content="0; url=/"')
    const page = await ask('/', { headers: await entered() })
    expect([page.status, page.headers['content-type']]).toEqual([200, 'text/html; charset=utf-8'])
  })

  test.each(['/', '/page.js', '/page.css', '/events'])('without the cookie, %s is refused', async path => {
    expect((await ask(path)).status).toBe(403)
    const wrong = { cookie: `understudy-${server.port}=${'A'.repeat(43)}` }
    expect((await ask(path, { headers: wrong })).status).toBe(403)
  })

  test('a wrong or cut token gives no cookie', async () => {
    for (const path of ['/?token=', `/?token=${'A'.repeat(43)}`, `/${invitation().slice(0, -1)}`]) {
      const { status, headers } = await ask(path)
      expect([status, headers['set-cookie']]).toEqual([403, undefined])
    }
  })

  test('a name that leads to this machine by DNS is refused, with the right cookie and token too', async () => {
    const headers = await entered()
    for (const host of [
      'evil.example',
      `evil.example:${server.port}`,
      '127.0.0.1',
      `127.0.0.1:1`,
      `0.0.0.0:${server.port}`,
    ])
      for (const path of ['/', '/events', `/${invitation()}`])
        expect((await ask(path, { host, headers })).status).toBe(403)
  })

  test('the names of this machine are allowed', async () => {
    const headers = await entered()
    for (const host of [`localhost:${server.port}`, `[::1]:${server.port}`])
      expect((await ask('/', { host, headers })).status).toBe(200)
  })

  test('what another site asks is refused', async () => {
    const headers = await entered()
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
    for (const path of ['/', '/nowhere', `/${invitation()}`]) {
      const { headers } = await ask(path, { headers: await entered() })
      expect(headers['content-security-policy']).toMatch(/^default-src 'none'; script-src 'self';/)
      expect(headers['content-security-policy']).toContain("frame-ancestors 'none'")
      expect(headers['content-security-policy']).not.toContain('unsafe')
      expect(headers).toMatchObject({ 'cache-control': 'no-store', 'x-content-type-options': 'nosniff' })
    }
  })
})

describe('D20.guard: messages and drills', () => {
  const tokenIn = (html: string): string => /name="understudy-token" content="([\w-]+)"/.exec(html)?.[1] ?? ''
  const wanted = { namespace: 'shop', set: 'web', slot: 3 }
  const post = async (headers: OutgoingHttpHeaders, body = JSON.stringify(wanted)) =>
    ask('/drill', { method: 'POST', body, headers: { ...(await entered()), ...headers } })
  const own = async () => ({
    origin: `http://127.0.0.1:${server.port}`,
    'x-understudy-token': tokenIn((await ask('/', { headers: await entered() })).text),
  })

  test('messages are server-sent events, and end with the page', async () => {
    const { headers, text } = await ask('/events', { headers: await entered() })
    expect(headers['content-type']).toBe('text/event-stream')
    expect(text).toBe('data: {"first":true}\n\n')
    await expect.poll(() => listeners).toBe(0)
  })

  test('a drill needs the token of the page and its origin', async () => {
    const { origin, 'x-understudy-token': token } = await own()
    expect((await post({})).status).toBe(403)
    expect((await post({ origin })).status).toBe(403)
    expect((await post({ 'x-understudy-token': token })).status).toBe(403)
    expect((await post({ origin, 'x-understudy-token': `${token}A` })).status).toBe(403)
    expect(drilled).toEqual([])
    const { status, text } = await post({ origin, 'x-understudy-token': token })
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
    expect((await post(await own(), body)).status).toBe(400)
    expect(drilled).toEqual([])
  })

  test('only POST drills, and nothing else does anything', async () => {
    const headers = { ...(await entered()), ...(await own()) }
    expect((await ask('/drill', { headers })).status).toBe(404)
    expect((await ask('/', { headers, method: 'DELETE' })).status).toBe(404)
    expect(drilled).toEqual([])
  })
})
