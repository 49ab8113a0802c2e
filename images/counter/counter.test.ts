import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { connect } from 'node:net'
import { afterEach, beforeAll, describe, expect, test } from 'vitest'
import { compileStatic } from '../../build/compile.ts'
import { freePort } from '../../playground/free-port.ts'
import { counterSource } from '../recipes/counter.ts'

let binary = ''
const children: ChildProcess[] = []

beforeAll(async () => {
  binary = await compileStatic(counterSource)
}, 300_000)

afterEach(async () => {
  for (const child of children.splice(0)) {
    if (child.exitCode !== null || child.signalCode !== null) continue
    child.kill('SIGKILL')
    await once(child, 'exit')
  }
})

/** Starts a counter and resolves when it listens. */
async function start(...args: string[]): Promise<{ child: ChildProcess; port: number; url: string }> {
  const port = await freePort()
  const child = spawn(binary, ['--port', String(port), ...args], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { HOSTNAME: 'pod-a' },
  })
  children.push(child)
  if (child.stdout === null) throw new Error('no stdout')
  await once(child.stdout, 'data')
  return { child, port, url: `http://127.0.0.1:${port}` }
}

/** Sends bytes on a fresh connection and returns everything received until the server closes. */
async function raw(port: number, ...pieces: string[]): Promise<string> {
  const socket = connect(port, '127.0.0.1')
  socket.setNoDelay(true)
  let answer = ''
  socket.on('data', chunk => {
    answer += chunk.toString()
  })
  for (const piece of pieces) {
    await new Promise<void>(resolve => socket.write(piece, () => setImmediate(resolve)))
  }
  await once(socket, 'close')
  return answer
}

const count = async (url: string, path: string): Promise<number> =>
  ((await (await fetch(url + path)).json()) as { count: number }).count

describe('counting', () => {
  test('GET / adds one and says who answers; /peek does not add', async () => {
    const { url, child } = await start()
    expect(await count(url, '/peek')).toBe(0)
    expect(await count(url, '/')).toBe(1)
    expect(await count(url, '/?any=query')).toBe(2)
    const response = await fetch(`${url}/peek`)
    expect(response.headers.get('content-type')).toBe('application/json')
    const body = (await response.json()) as { pid: number; host: string; startedAt: number }
    expect(body).toMatchObject({ count: 2, pid: child.pid, host: 'pod-a' })
    expect(Math.abs(body.startedAt - Date.now())).toBeLessThan(60_000)
  })

  test('no request is lost or counted twice with many connections at once', async () => {
    const { url } = await start()
    const seen = await Promise.all(Array.from({ length: 300 }, () => count(url, '/')))
    expect(seen.toSorted((a, b) => a - b)).toEqual(Array.from({ length: 300 }, (_, index) => index + 1))
  })

  test('HEAD has the headers of GET and no body', async () => {
    const { url } = await start()
    const response = await fetch(`${url}/peek`, { method: 'HEAD' })
    expect(response.status).toBe(200)
    expect(Number(response.headers.get('content-length'))).toBeGreaterThan(30)
    expect(await response.text()).toBe('')
  })
})

describe('state', () => {
  test('what one gives, another takes and goes on from', async () => {
    const [a, b] = [await start(), await start()]
    for (let i = 0; i < 3; i += 1) await count(a.url, '/')
    const state = await (await fetch(`${a.url}/state`)).text()
    expect(state).toBe('{"count":3}\n')
    const answer = await fetch(`${b.url}/state`, { method: 'POST', body: state })
    expect([answer.status, await answer.text()]).toEqual([200, 'taken\n'])
    expect(await count(b.url, '/')).toBe(4)
  })

  test.each(['', '{}', '{"count":-1}', '{"count":"3"}', 'x'.repeat(5000)])('%j is none', async body => {
    const { url } = await start()
    await count(url, '/')
    expect((await fetch(`${url}/state`, { method: 'POST', body })).status).toBe(400)
    expect(await count(url, '/peek')).toBe(1)
  })

  test('a body in pieces is waited for, and what follows it is the next request', async () => {
    const { port } = await start()
    const post = 'POST /state HTTP/1.1\r\nHost: x\r\nContent-Length: 11\r\n\r\n'
    const answer = await raw(port, post, '{"count', '":7}GET / HTTP/1.1\r\n', 'Connection: close\r\n\r\n')
    expect(answer).toContain('taken')
    expect(answer).toContain('"count":8')
  })
})

describe('HTTP', () => {
  test('pipelined requests on one connection are answered in order', async () => {
    const { port } = await start()
    const get = 'GET / HTTP/1.1\r\nHost: x\r\n\r\n'
    const answer = await raw(port, get + get, `${get}GET / HTTP/1.1\r\nConnection: close\r\n\r\n`)
    expect([...answer.matchAll(/"count":(\d+)/g)].map(match => match[1])).toEqual(['1', '2', '3', '4'])
    expect([...answer.matchAll(/Connection: (\S+)/g)].map(match => match[1])).toEqual([
      'keep-alive',
      'keep-alive',
      'keep-alive',
      'close',
    ])
  })

  test('a request in pieces is answered when it is complete', async () => {
    const { port } = await start()
    const answer = await raw(port, 'GE', 'T /pe', 'ek HTTP/1.1\r\nConnec', 'tion: close\r\n', '\r\n')
    expect(answer).toMatch(/^HTTP\/1\.1 200 OK\r\n/)
  })

  test('HTTP/1.0 closes unless asked to keep alive', async () => {
    const { port } = await start()
    expect(await raw(port, 'GET /peek HTTP/1.0\r\n\r\n')).toContain('Connection: close')
    const two = 'GET /peek HTTP/1.0\r\nConnection: keep-alive\r\n\r\nGET /peek HTTP/1.0\r\n\r\n'
    expect((await raw(port, two)).match(/HTTP\/1\.1 200/g)).toHaveLength(2)
  })

  test.each([
    ['not HTTP at all', 'hello\r\n\r\n', 400],
    ['an endless header', `GET / HTTP/1.1\r\nX: ${'a'.repeat(5000)}`, 431],
    ['an unknown page', 'GET /other HTTP/1.0\r\n\r\n', 404],
    ['writing to the count', 'POST / HTTP/1.0\r\n\r\n', 405],
    [
      'a body that looks like a request',
      'POST /fail HTTP/1.1\r\nContent-Length: 18\r\n\r\nGET / HTTP/1.1\r\n\r\n',
      200,
    ],
  ])('%s: one answer with the right status, then closed', async (_, request, status) => {
    const { port, url } = await start()
    const answer = await raw(port, request)
    expect(answer.match(/HTTP\/1\.1 \d+/g)).toEqual([`HTTP/1.1 ${status}`])
    expect(await count(url, '/peek')).toBe(0)
  })

  test('clients that hang up early do not stop it', async () => {
    const { port, url } = await start()
    for (let round = 0; round < 50; round++) {
      const socket = connect(port, '127.0.0.1')
      socket.write('GET / HTTP/1.1\r\n')
      await once(socket, 'connect')
      socket.resetAndDestroy()
    }
    expect(await count(url, '/peek')).toBe(0)
  })
})

describe('health and death', () => {
  test('/healthz fails between POST /fail and POST /recover', async () => {
    const { url } = await start()
    const health = async (): Promise<number> => (await fetch(`${url}/healthz`)).status
    expect(await health()).toBe(200)
    await fetch(`${url}/fail`, { method: 'POST' })
    expect(await health()).toBe(503)
    await fetch(`${url}/recover`, { method: 'POST' })
    expect(await health()).toBe(200)
  })

  test('POST /crash ends it with exit code 7; GET /crash does not', async () => {
    const { url, child } = await start()
    expect((await fetch(`${url}/crash`)).status).toBe(404)
    const exited = once(child, 'exit')
    await expect(fetch(`${url}/crash`, { method: 'POST' })).rejects.toThrow()
    expect(await exited).toEqual([7, null])
  })

  test.each(['SIGTERM', 'SIGINT'] as const)('%s ends it with exit code 0', async signal => {
    const { child } = await start()
    const exited = once(child, 'exit')
    child.kill(signal)
    expect(await exited).toEqual([0, null])
  })

  test('SIGTERM ends it during its start delay', async () => {
    const child = spawn(binary, ['--port', String(await freePort()), '--start-delay', '600000'])
    children.push(child)
    await once(child, 'spawn')
    const exited = once(child, 'exit')
    child.kill('SIGTERM')
    const [code, signal] = await exited
    // A signal that arrives before main() has installed its handler kills it by default; either way it ends.
    expect([code, signal]).toSatisfy(([c, s]) => c === 0 || s === 'SIGTERM')
  })

  test('with ignore it goes on after SIGTERM', async () => {
    const { child, url } = await start('ignore')
    child.kill('SIGTERM')
    expect(await count(url, '/')).toBe(1)
    expect(child.exitCode).toBe(null)
  })

  test.each([[['--port', '0']], [['--port']], [['--port', '80x']], [['--start-delay', '-1']], [['other']]])(
    'arguments %j are refused with exit code 2',
    async args => {
      const child = spawn(binary, args, { stdio: 'ignore' })
      children.push(child)
      expect(await once(child, 'exit')).toEqual([2, null])
    },
  )
})
