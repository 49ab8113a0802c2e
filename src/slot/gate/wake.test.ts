import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer, type Socket } from 'node:net'
import { createInterface } from 'node:readline'
import { afterEach, beforeAll, describe, expect, test, vi } from 'vitest'
import { buildWaker } from '../../../init-waker/build.ts'
import { createFakeClock } from '../../kube/clock.ts'
import { parseReply } from './reply.ts'
import { deriveToken, tokenDigest } from './token.ts'
import { type WakeRequest, wake } from './wake.ts'

const key = Buffer.alloc(32, 7)
const token = deriveToken(key, '7d7c1d9e-4b4f-4a0f-9a55-6f1f0c1b2a3d', 'web-3f583358bca8')

const requestTo = (port: number, rest: Partial<WakeRequest> = {}): WakeRequest => ({
  host: '127.0.0.1',
  port,
  token,
  kind: 'primary',
  timeoutMs: 20_000,
  ...rest,
})

const cleanups: (() => unknown)[] = []
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup()
})

/** A server that calls `serve` with each connection. */
async function serverThat(serve: (socket: Socket) => void): Promise<{ port: number }> {
  const sockets = new Set<Socket>()
  const server = createServer(socket => {
    sockets.add(socket)
    socket.on('error', () => {})
    serve(socket)
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  cleanups.push(() => {
    for (const socket of sockets) socket.destroy()
    return new Promise(resolve => server.close(resolve))
  })
  return { port: (server.address() as { port: number }).port }
}

describe('against the real gate', () => {
  let waker: string
  beforeAll(async () => {
    waker = await buildWaker()
  })

  async function gate(): Promise<{ port: number; exit: Promise<number | null> }> {
    const child = spawn(waker, ['wait', '--port', '0', '--token-sha256', tokenDigest(token)], {
      stdio: ['ignore', 'ignore', 'pipe'],
    })
    const exit = new Promise<number | null>(resolve => child.on('exit', resolve))
    cleanups.push(() => {
      child.kill('SIGKILL')
      return exit
    })
    const [line] = (await once(createInterface(child.stderr), 'line')) as [string]
    return { port: (JSON.parse(line) as { port: number }).port, exit }
  }

  test.each(['primary', 'hotbackup'] as const)("woken as %s, with the gate's own time", async kind => {
    const { port, exit } = await gate()
    const before = BigInt(Date.now()) * 1_000_000n
    const reply = await wake(requestTo(port, { kind }))
    expect(reply).toEqual({ type: 'woken', atNs: expect.any(BigInt) })
    if (reply.type !== 'woken') throw new Error('unreachable')
    expect(reply.atNs >= before && reply.atNs <= BigInt(Date.now() + 1) * 1_000_000n).toBe(true)
    expect(await exit).toBe(0)
    expect(await wake(requestTo(port))).toMatchObject({ type: 'refused' })
  })

  test('several at once: one wakes, the others hear of it or come too late', async () => {
    const { port, exit } = await gate()
    const replies = await Promise.all(Array.from({ length: 8 }, () => wake(requestTo(port))))
    const woken = replies.filter(reply => reply.type === 'woken')
    expect(woken).toHaveLength(1)
    for (const reply of replies) {
      if (reply.type === 'already') expect(reply.atNs).toBe(woken[0]?.type === 'woken' && woken[0].atNs)
      expect(['woken', 'already', 'refused', 'garbled']).toContain(reply.type)
    }
    expect(await exit).toBe(0)
  })

  test('the token of another pod is denied', async () => {
    const { port } = await gate()
    const other = deriveToken(key, '7d7c1d9e-4b4f-4a0f-9a55-6f1f0c1b2a3d', 'web-000000000000')
    expect(await wake(requestTo(port, { token: other }))).toMatchObject({ type: 'denied' })
    expect(await wake(requestTo(port))).toMatchObject({ type: 'woken' })
  })

  test('a token that is none is malformed', async () => {
    const { port } = await gate()
    expect(await wake(requestTo(port, { token: 'short' }))).toMatchObject({ type: 'malformed' })
  })
})

describe('against what is no gate', () => {
  const good = 'understudy/1 woken 1795257955561247113\n'

  test('nobody listens: refused', async () => {
    // Its own address: another process may reuse a port that has just become free.
    expect(await wake(requestTo(20077, { host: '127.78.0.1' }))).toEqual({
      type: 'refused',
      detail: expect.stringContaining('ECONNREFUSED'),
    })
  })

  test('a name that is none: unreachable', async () => {
    expect(await wake(requestTo(20000, { host: 'gate.invalid' }))).toMatchObject({ type: 'unreachable' })
  })

  test('an address without a route: unreachable', async () => {
    // A class E address: the kernel itself rejects it.
    expect(await wake(requestTo(20000, { host: '255.255.255.255' }))).toMatchObject({ type: 'unreachable' })
  })

  test.each([
    ['silent', (_: Socket) => {}],
    ['speaking without an end', (socket: Socket) => socket.write(good.slice(0, -1))],
  ])('%s: timeout at the deadline, which covers everything', async (_, serve) => {
    const clock = createFakeClock()
    const served = Promise.withResolvers<Socket>()
    const { port } = await serverThat(socket => {
      serve(socket)
      served.resolve(socket)
    })
    const reply = wake(requestTo(port, { clock, timeoutMs: 5000 }))
    const socket = await served.promise
    await clock.advance(4999)
    expect(await Promise.race([reply, Promise.resolve('waiting')])).toBe('waiting')
    await clock.advance(1)
    expect(await reply).toEqual({ type: 'timeout', detail: 'no reply within 5000 ms' })
    // It closes the connection: a gate that responds later finds no client.
    socket.resume()
    await once(socket, 'close')
    expect(clock.sleepers()).toBe(0)
  })

  test('byte after byte: one deadline for all of them', async () => {
    const clock = createFakeClock()
    const { port } = await serverThat(socket => {
      socket.setNoDelay(true)
      const drip = setInterval(() => socket.write('u'), 20)
      socket.on('close', () => clearInterval(drip))
    })
    const reply = wake(requestTo(port, { clock, timeoutMs: 3000 }))
    await clock.untilSleepers(1)
    await clock.advance(3000)
    expect(await reply).toMatchObject({ type: 'timeout' })
  })

  test('a connect that gets no answer: timeout', async () => {
    const clock = createFakeClock()
    const { Socket } = await import('node:net')
    const reply = wake(requestTo(20000, { clock, timeoutMs: 5000, connect: () => new Socket() }))
    await clock.advance(5000)
    expect(await reply).toMatchObject({ type: 'timeout' })
  })

  test.each([
    ['nothing, then the end', ''],
    ['half a reply', good.slice(0, 20)],
    ['no newline', good.slice(0, -1)],
    ['another protocol', 'HTTP/1.1 400 Bad Request\r\n\r\n'],
    ['another version', good.replace('/1', '/2')],
    ['another verdict', good.replace('woken', 'opened')],
    ['no time', 'understudy/1 woken\n'],
    ['a time that is none', 'understudy/1 woken soon\n'],
    ['a time of twenty digits', 'understudy/1 woken 17952579555612471130\n'],
    ['a second line at once', good + good],
    ['something in front', ` ${good}`],
    ['a carriage return', good.replace('\n', '\r\n')],
    ['bytes that are not text', Buffer.from([0xff, 0, 0x80, 0x0a])],
    ['a megabyte', Buffer.alloc(1_000_000, 'a')],
  ])('%s: garbled', async (_, bytes) => {
    const { port } = await serverThat(socket => socket.end(bytes))
    expect(await wake(requestTo(port))).toMatchObject({ type: 'garbled' })
  })

  test('a reset instead of a reply: garbled', async () => {
    const { port } = await serverThat(socket => socket.once('data', () => socket.resetAndDestroy()))
    expect(await wake(requestTo(port))).toEqual({
      type: 'garbled',
      detail: expect.stringContaining('ECONNRESET'),
    })
  })

  test('a reply in single bytes is a reply, and nothing behind it is waited for', async () => {
    const { port } = await serverThat(async socket => {
      socket.setNoDelay(true)
      for (const byte of good) await new Promise(sent => socket.write(byte, sent))
    })
    expect(await wake(requestTo(port))).toEqual({ type: 'woken', atNs: 1795257955561247113n })
  })

  test('the request is one line of at most 128 bytes', async () => {
    const received = Promise.withResolvers<string>()
    const { port } = await serverThat(socket => {
      let text = ''
      socket.on('data', chunk => {
        text += chunk.toString()
        if (text.includes('\n')) socket.end(good)
      })
      socket.on('end', () => received.resolve(text))
    })
    await wake(requestTo(port, { kind: 'hotbackup' }))
    expect(await received.promise).toBe(`understudy/1 wake ${token} hotbackup\n`)
    expect((await received.promise).length).toBeLessThanOrEqual(128)
  })
})

describe('aborting', () => {
  test('an aborted signal throws its reason before anything is sent', async () => {
    const connect = vi.fn<NonNullable<WakeRequest['connect']>>()
    const signal = AbortSignal.abort(new Error('shutting down'))
    await expect(wake(requestTo(20000, { signal, connect }))).rejects.toThrow('shutting down')
    expect(connect).not.toHaveBeenCalled()
  })

  test('an abort in the middle throws its reason and hangs up', async () => {
    const served = Promise.withResolvers<Socket>()
    const { port } = await serverThat(socket => served.resolve(socket))
    const clock = createFakeClock()
    const controller = new AbortController()
    const reply = wake(requestTo(port, { signal: controller.signal, clock }))
    const socket = await served.promise
    controller.abort(new Error('lost the lease'))
    await expect(reply).rejects.toThrow('lost the lease')
    socket.resume()
    await once(socket, 'close')
    expect(clock.sleepers()).toBe(0)
  })
})

test('a reply is read only as a whole', () => {
  expect(parseReply('understudy/1 already 17\n')).toEqual({ verdict: 'already', atNs: 17n })
  expect(parseReply('understudy/1 already 17')).toBeUndefined()
  expect(parseReply('understudy/1 already 17\n\n')).toBeUndefined()
  expect(parseReply('')).toBeUndefined()
})
