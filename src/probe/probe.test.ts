// Long because each kind of probe has its cases.
import { spawn } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { createServer as createHttp, type RequestListener } from 'node:http'
import { createServer as createHttp2, type Http2Server, type ServerHttp2Stream } from 'node:http2'
import { createServer as createHttps } from 'node:https'
import { type AddressInfo, createServer as createTcp, type Server } from 'node:net'
import { afterEach, describe, expect, test } from 'vitest'
import { testCertificate, testKey } from '../kube/testing/certificate.ts'
import { encodeHealthRequest } from './grpc-frame.ts'
import type { Handler, HttpHandler } from './handler.ts'
import { probe } from './probe.ts'

const closing: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})

const never = new AbortController().signal
const target = { address: '127.0.0.1' }
const ask = (handler: Handler, timeoutMs = 50_000, signal = never) =>
  probe(handler, target, { timeoutMs, signal })

const listen = async (server: Server | Http2Server): Promise<number> => {
  const sockets = new Set<{ destroy(): void }>()
  server.on('connection', socket => {
    sockets.add(socket)
    socket.on('error', () => {})
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', () => resolve()))
  closing.push(() => {
    for (const socket of sockets) socket.destroy()
    return new Promise(resolve => server.close(resolve))
  })
  return (server.address() as AddressInfo).port
}

const freePort = async () => {
  const server = createTcp()
  const port = await listen(server)
  await closing.pop()?.()
  return port
}

const http = (port: number, more: Partial<HttpHandler> = {}): HttpHandler => ({
  type: 'http',
  scheme: 'http',
  port,
  path: '/',
  headers: [],
  ...more,
})

describe('HTTP', () => {
  const serve = (listener: RequestListener) => listen(createHttp(listener))

  test.each([
    [200, 'success'],
    [204, 'success'],
    [304, 'success'],
    [399, 'success'],
    [400, 'failure'],
    [500, 'failure'],
    [503, 'failure'],
  ])('status %i is a %s', async (status, outcome) => {
    const port = await serve((_, response) => response.writeHead(status).end())
    expect((await ask(http(port))).outcome).toBe(outcome)
  })

  test('asks with the headers of the template, and with ours where it has none', async () => {
    const port = await serve(({ rawHeaders, headers, url, method }, response) =>
      response.end(JSON.stringify({ rawHeaders, headers, url, method }), () =>
        seen.resolve({ headers, url }),
      ),
    )
    const seen = Promise.withResolvers<{ headers: object; url: string | undefined }>()
    const headers = [
      { name: 'X-Token', value: 'a' },
      { name: 'x-token', value: 'b' },
      { name: 'User-Agent', value: 'mine' },
      { name: 'Host', value: 'shop.example' },
    ]
    expect(await ask(http(port, { path: '/live?deep=1', headers }))).toEqual({ outcome: 'success' })
    expect(await seen.promise).toMatchObject({
      url: '/live?deep=1',
      headers: { 'x-token': 'a, b', 'user-agent': 'mine', host: 'shop.example', accept: '*/*' },
    })
  })

  test('the template may ask for no Accept', async () => {
    const seen = Promise.withResolvers<object>()
    const port = await serve(({ headers }, response) => {
      seen.resolve(headers)
      response.end()
    })
    await ask(http(port, { headers: [{ name: 'Accept', value: '' }] }))
    expect(await seen.promise).not.toHaveProperty('accept')
    expect(await seen.promise).toHaveProperty('host', `127.0.0.1:${port}`)
  })

  test('follows redirects on the same host, to other ports too', async () => {
    const other = await serve((_, response) => response.writeHead(500).end())
    const port = await serve(({ url }, response) => {
      if (url === '/good') response.end()
      else if (url === '/a') response.writeHead(302, { location: 'good' }).end()
      else response.writeHead(307, { location: `http://127.0.0.1:${other}/x` }).end()
    })
    expect((await ask(http(port, { path: '/a' }))).outcome).toBe('success')
    expect(await ask(http(port, { path: '/b' }))).toEqual({ outcome: 'failure', message: 'status 500' })
  })

  test('a redirect to another host is an answer, and nobody there is asked', async () => {
    const port = await serve((_, response) =>
      response.writeHead(302, { location: 'http://169.254.169.254/secret' }).end(),
    )
    expect((await ask(http(port))).outcome).toBe('success')
  })

  test('a redirect without end is a failure', async () => {
    let asked = 0
    const port = await serve((_, response) => {
      asked += 1
      response.writeHead(302, { location: '/' }).end()
    })
    expect((await ask(http(port))).outcome).toBe('failure')
    expect(asked).toBe(11)
  })

  test.each(['ftp://127.0.0.1/', 'http://[half/'])('%s is no location', async location => {
    const port = await serve((_, response) => response.writeHead(302, { location }).end())
    expect((await ask(http(port))).outcome).toBe('failure')
  })

  test('a redirect without a location is an answer', async () => {
    const port = await serve((_, response) => response.writeHead(301).end())
    expect((await ask(http(port))).outcome).toBe('success')
  })

  test('of a body without end only the beginning is read', async () => {
    const port = await serve((_, response) => {
      response.writeHead(200)
      const more = () => {
        if (!response.destroyed) response.write(Buffer.alloc(4096), more)
      }
      more()
    })
    expect((await ask(http(port))).outcome).toBe('success')
  })

  test('a body that breaks off is a failure', async () => {
    const port = await serve((_, response) => {
      response.writeHead(200, { 'content-length': 100 }).write('half', () => response.destroy())
    })
    expect((await ask(http(port))).outcome).toBe('failure')
  })

  test('a header that cannot be sent is a failure, not an error', async () => {
    const port = await serve((_, response) => response.end())
    const result = await ask(http(port, { headers: [{ name: 'X', value: 'a\nb' }] }))
    expect(result.outcome).toBe('failure')
  })

  test('HTTPS takes any certificate', async () => {
    const server = createHttps({ cert: testCertificate, key: testKey }, (_, response) => response.end())
    const port = await listen(server)
    expect((await ask(http(port, { scheme: 'https' }))).outcome).toBe('success')
    expect((await ask(http(port))).outcome).toBe('failure')
  })
})

describe('TCP', () => {
  test('somebody accepts, or nobody', async () => {
    const port = await listen(createTcp())
    expect(await ask({ type: 'tcp', port })).toEqual({ outcome: 'success' })
    const closed = await freePort()
    expect((await ask({ type: 'tcp', port: closed })).outcome).toBe('failure')
  })
})

describe('gRPC', () => {
  const serve = (answer: (stream: ServerHttp2Stream, request: Buffer, path: string) => void) => {
    const server = createHttp2()
    server.on('stream', (stream, headers) => {
      stream.on('error', () => {})
      const chunks: Buffer[] = []
      stream.on('data', (chunk: Buffer) => chunks.push(chunk))
      stream.on('end', () => answer(stream, Buffer.concat(chunks), String(headers[':path'])))
    })
    return listen(server)
  }
  const reply = (stream: ServerHttp2Stream, message: number[], status = '0') => {
    stream.respond({ ':status': 200, 'content-type': 'application/grpc' }, { waitForTrailers: true })
    stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': status }))
    stream.end(Buffer.from([0, 0, 0, 0, message.length, ...message]))
  }
  const check = (port: number, service = '') => ask({ type: 'grpc', port, service })

  test('serving', async () => {
    const seen = Promise.withResolvers<unknown[]>()
    const port = await serve((stream, request, path) => {
      seen.resolve([path, request])
      reply(stream, [8, 1])
    })
    expect(await check(port, 'shop')).toEqual({ outcome: 'success' })
    expect(await seen.promise).toEqual(['/grpc.health.v1.Health/Check', encodeHealthRequest('shop')])
  })

  test('not serving', async () => {
    const port = await serve(stream => reply(stream, [8, 2]))
    expect(await check(port)).toEqual({ outcome: 'failure', message: 'the service is NOT_SERVING' })
  })

  test('a status in the headers alone', async () => {
    const port = await serve(stream => stream.respond({ 'grpc-status': '5' }, { endStream: true }))
    expect(await check(port)).toEqual({ outcome: 'failure', message: 'gRPC status 5' })
  })

  test('a server without health', async () => {
    const port = await serve(stream => stream.respond({ 'grpc-status': '12' }, { endStream: true }))
    expect(await check(port)).toEqual({
      outcome: 'failure',
      message: 'the server has no service grpc.health.v1.Health',
    })
  })

  test('a server of something else', async () => {
    const port = await serve(stream => stream.respond({ ':status': 404 }, { endStream: true }))
    expect(await check(port)).toEqual({ outcome: 'failure', message: 'HTTP status 404' })
    expect((await check(await listen(createHttp((_, response) => response.end())))).outcome).toBe('failure')
  })

  test('no gRPC status, no answer', async () => {
    const port = await serve(stream => {
      stream.respond({ ':status': 200 })
      stream.end(Buffer.from([0, 0, 0, 0, 2, 8, 1]))
    })
    expect(await check(port)).toEqual({ outcome: 'failure', message: 'the answer has no gRPC status' })
  })

  test('an answer without end', async () => {
    const port = await serve(stream => {
      stream.respond({ ':status': 200 })
      const more = () => {
        if (!stream.destroyed) stream.write(Buffer.alloc(1024), more)
      }
      more()
    })
    expect(await check(port)).toEqual({ outcome: 'failure', message: 'the answer is too long' })
  })

  test('a connection that closes, and a port that nobody has', async () => {
    const port = await listen(createTcp(socket => socket.end()))
    expect((await check(port)).outcome).toBe('failure')
    expect((await check(await freePort())).outcome).toBe('failure')
  })
})

describe('any probe', () => {
  const handlers = (port: number): Handler[] => [http(port), { type: 'grpc', port, service: '' }]

  test('fails when nobody answers in time', async () => {
    const port = await listen(createTcp())
    for (const handler of handlers(port))
      expect(await ask(handler, 20)).toEqual({ outcome: 'failure', message: 'no answer within 20 ms' })
  })

  test('leaves no connection behind', async () => {
    const server = createTcp(socket => socket.on('error', () => {}).resume())
    const port = await listen(server)
    const closed: Promise<unknown>[] = []
    server.on('connection', socket => closed.push(new Promise(resolve => socket.on('close', resolve))))
    for (const handler of handlers(port)) await ask(handler, 20)
    await ask({ type: 'tcp', port })
    await Promise.all(closed)
    expect(closed.length).toBeGreaterThan(0)
  })

  test('ends with the signal', async () => {
    const accepted = Promise.withResolvers<void>()
    const port = await listen(createTcp(() => accepted.resolve()))
    for (const handler of handlers(port)) {
      const stop = new AbortController()
      const asked = ask(handler, 60_000, stop.signal)
      await accepted.promise
      stop.abort(new Error('enough'))
      await expect(asked).rejects.toThrow('enough')
      await expect(ask(handler, 60_000, stop.signal)).rejects.toThrow('enough')
    }
  })

  describe('a pause of this process', () => {
    /** Probes with a timer of 50 ms that fires 250 ms late; returns the requested sleeps. */
    const askThroughPause = async () => {
      const reply = Promise.withResolvers<() => void>()
      const port = await listen(createHttp((_, response) => reply.resolve(() => response.end())))
      let time = 0
      const sleeps: { ms: number; wake: () => void }[] = []
      const clock = {
        now: () => time,
        monotonic: () => time,
        sleep: (ms: number) => new Promise<void>(wake => sleeps.push({ ms, wake })),
      }
      const asked = probe(http(port), target, { timeoutMs: 50, signal: never, clock })
      const answer = await reply.promise
      time = 300
      sleeps[0]?.wake()
      await expect.poll(() => sleeps.map(({ ms }) => ms)).toEqual([50, 50])
      return { asked, answer, expire: () => sleeps[1]?.wake() }
    }

    test('is not held against the app', async () => {
      const { asked, answer } = await askThroughPause()
      answer()
      expect(await asked).toEqual({ outcome: 'success' })
    })

    test('is no excuse for ever', async () => {
      const { asked, expire } = await askThroughPause()
      expire()
      expect(await asked).toEqual({ outcome: 'failure', message: 'no answer within 50 ms' })
    })
  })

  test('an app that is stopped accepts connections and answers nothing', async () => {
    const child = spawn(process.execPath, [
      '-e',
      `const s = require('node:http').createServer((q, r) => r.end())
       s.listen(0, '127.0.0.1', () => console.log(s.address().port))`,
    ])
    closing.push(() => child.kill('SIGKILL'))
    const port = await new Promise<number>(resolve =>
      child.stdout.once('data', (line: Buffer) => resolve(Number(line))),
    )
    child.kill('SIGSTOP')
    await expect
      .poll(async () => (await readFile(`/proc/${child.pid}/stat`, 'utf8')).split(') ')[1]?.[0])
      .toBe('T')
    // The pitfall: for this reason, the agent concludes nothing from a port before the thaw.
    expect(await ask({ type: 'tcp', port })).toEqual({ outcome: 'success' })
    expect((await ask(http(port), 200)).outcome).toBe('failure')
    child.kill('SIGCONT')
    expect(await ask(http(port))).toEqual({ outcome: 'success' })
  })

  test('D6.exec-probes: a command is run by whoever holds the container, never by the agent itself', async () => {
    const handler = { type: 'exec', container: 'app', command: ['touch', '/tmp/never'] } as const
    expect(await ask(handler)).toMatchObject({ outcome: 'unsupported' })
    const asked: unknown[] = []
    const target = {
      address: '127.0.0.1',
      run: async (container: string, command: readonly string[]) => {
        asked.push([container, command])
        return { outcome: 'success' } as const
      },
    }
    const { signal } = new AbortController()
    expect(await probe(handler, target, { timeoutMs: 1_000, signal })).toEqual({ outcome: 'success' })
    expect(asked).toEqual([['app', ['touch', '/tmp/never']]])
  })

  test('a command that takes too long is given up, and told so', async () => {
    let gaveUp = false
    const target = {
      address: '127.0.0.1',
      run: (_: string, __: readonly string[], signal: AbortSignal) =>
        new Promise<never>((_resolve, reject) => {
          signal.addEventListener('abort', () => {
            gaveUp = true
            reject(signal.reason)
          })
        }),
    }
    const { signal } = new AbortController()
    const handler = { type: 'exec', container: 'app', command: ['sleep'] } as const
    expect((await probe(handler, target, { timeoutMs: 20, signal })).outcome).toBe('failure')
    expect(gaveUp).toBe(true)
  })
})
