import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { gzipSync } from 'node:zlib'
import { Agent } from 'undici'
import { afterAll, describe, expect, it } from 'vitest'
import { pullState, pushState } from './transfer.ts'

const dispatcher = new Agent()
afterAll(() => dispatcher.destroy())
const forever = new AbortController().signal

async function serve(listener: RequestListener) {
  const server = createServer(listener).listen(0, '127.0.0.1')
  await new Promise(resolve => server.once('listening', resolve))
  const pull = {
    port: (server.address() as AddressInfo).port,
    path: '/state?full=1',
    headers: [{ name: 'Authorization', value: 'Bearer x' }],
    maxBytes: 1000,
    timeoutMs: 5_000,
    push: {
      path: '/restore',
      method: 'PUT' as const,
      headers: [{ name: 'authorization', value: 'Bearer y' }],
      everyInterval: false,
    },
  }
  return {
    pull,
    get: (more: object = {}, signal = forever) =>
      pullState('127.0.0.1', { ...pull, ...more }, dispatcher, signal),
    put: (bytes: Buffer, more: object = {}) =>
      pushState(
        '127.0.0.1',
        { ...pull, ...more },
        { bytes, digest: '', contentType: 'a/b' },
        dispatcher,
        forever,
      ),
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections()
      await new Promise(resolve => server.close(resolve))
    },
  }
}

const answering = (status: number, body: Buffer | string = '', headers: Record<string, string> = {}) =>
  serve((_, response) => {
    response.writeHead(status, headers).end(body)
  })

describe('pulling', () => {
  it('takes bytes of any kind as they are, with their type and digest, and sends the headers', async () => {
    const bytes = Buffer.from(Array.from({ length: 256 }, (_, i) => i))
    let asked: unknown
    await using app = await serve((request, response) => {
      asked = [request.method, request.url, request.headers['authorization']]
      response.writeHead(201, { 'content-type': 'application/x-thing; a=b' }).end(bytes)
    })
    const result = await app.get()
    expect(asked).toEqual(['GET', '/state?full=1', 'Bearer x'])
    expect(result).toMatchObject({ type: 'state', state: { contentType: 'application/x-thing; a=b' } })
    if (result.type !== 'state') throw new Error('no state')
    expect(result.state.bytes.equals(bytes)).toBe(true)
    expect(result.state.digest).toMatch(/^[0-9a-f]{64}$/)
  })

  it('an empty state is a state', async () => {
    await using app = await answering(200)
    expect(await app.get()).toMatchObject({ type: 'state', state: { contentType: undefined } })
  })

  it.each([404, 500, 302, 204, 206])('status %i is no state', async status => {
    await using app = await answering(status, status === 204 ? '' : 'secret', {
      location: 'http://127.0.0.1/x',
    })
    const result = await app.get()
    expect(result).toMatchObject({ type: 'failed', reason: 'PullFailed' })
    expect(JSON.stringify(result)).toContain(`${status}`)
    expect(JSON.stringify(result)).not.toContain('secret')
  })

  it('gzip is unpacked, and what it hides counts for the limit', async () => {
    await using small = await answering(200, gzipSync('hello'), { 'content-encoding': 'gzip' })
    expect(await small.get()).toMatchObject({ type: 'state', state: { bytes: Buffer.from('hello') } })
    await using bomb = await answering(200, gzipSync(Buffer.alloc(1e6)), { 'content-encoding': 'gzip' })
    expect(await bomb.get()).toMatchObject({ type: 'failed', reason: 'StateTooLarge' })
    await using broken = await answering(200, gzipSync('hello').subarray(0, 12), {
      'content-encoding': 'gzip',
    })
    expect(await broken.get()).toMatchObject({ type: 'failed', reason: 'PullFailed' })
    await using other = await answering(200, 'x', { 'content-encoding': 'br' })
    expect(await other.get()).toMatchObject({ type: 'failed', reason: 'PullFailed' })
  })

  it('a state that is too large is refused, whether it says so or not, and the cure is named', async () => {
    await using said = await answering(200, Buffer.alloc(1001))
    expect(await said.get()).toMatchObject({
      reason: 'StateTooLarge',
      why: expect.stringContaining('maxSize'),
    })
    await using unsaid = await serve((_, response) => {
      response.write(Buffer.alloc(600))
      response.end(Buffer.alloc(600))
    })
    expect(await unsaid.get()).toMatchObject({ type: 'failed', reason: 'StateTooLarge' })
    await using exact = await answering(200, Buffer.alloc(1000))
    expect(await exact.get()).toMatchObject({ type: 'state' })
  })

  it('half a state is none: not of an app that ends, hangs, or is not there', async () => {
    await using cut = await serve((_, response) => {
      response.writeHead(200, { 'content-length': '100' }).write('half')
      setImmediate(() => response.destroy())
    })
    expect(await cut.get()).toMatchObject({ type: 'failed', reason: 'PullFailed' })
    await using hanging = await serve((_, response) => {
      response.writeHead(200).write('half')
    })
    expect(await hanging.get({ timeoutMs: 100 })).toMatchObject({
      type: 'failed',
      why: expect.stringContaining('was not complete within 0.1 s'),
    })
    const { pull } = hanging
    await hanging[Symbol.asyncDispose]()
    expect(await pullState('127.0.0.1', pull, dispatcher, forever)).toMatchObject({ type: 'failed' })
  })
})

describe('pushing', () => {
  it('sends the same bytes with their type, by the method, path and headers that were given', async () => {
    const bytes = Buffer.from([1, 0, 255])
    const seen: unknown[] = []
    await using app = await serve((request, response) => {
      const { method, url, headers } = request
      request.on('data', chunk => seen.push(chunk))
      request.on('end', () => {
        seen.push(method, url, headers['content-type'], headers['content-length'], headers['authorization'])
        response.writeHead(204).end()
      })
    })
    expect(await app.put(bytes)).toEqual({ type: 'taken' })
    expect(seen).toEqual([bytes, 'PUT', '/restore', 'a/b', '3', 'Bearer y'])
  })

  it.each([400, 500, 307])('status %i means that it was not taken', async status => {
    await using app = await answering(status, '', { location: '/other' })
    expect(await app.put(Buffer.from('x'))).toMatchObject({
      type: 'failed',
      why: expect.stringContaining(`${status}`),
    })
  })
})
