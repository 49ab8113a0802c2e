/** The server beside programs of other users, and pages that do not read. */
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { once } from 'node:events'
import { request, Server } from 'node:http'
import { connect, type Socket } from 'node:net'
import { expect, test } from 'vitest'
import { serve } from './server.ts'

const keyOf = (address: string): string => new URL(address).hash.slice('#key='.length)
const assets = { script: 'script', style: 'style' }
const nothing = { subscribe: () => () => undefined }
const drill = async () => ({ ok: true, text: '' }) as const
const options = { assets, drill, feed: nothing, port: 0, problem: () => undefined }

/** Opens connections until they are all accepted or refused. */
async function opened(port: number, count: number): Promise<readonly Socket[]> {
  const sockets = Array.from({ length: count }, () => connect(port, '127.0.0.1'))
  for (const socket of sockets) socket.on('error', () => undefined)
  await Promise.all(sockets.map(socket => Promise.race([once(socket, 'connect'), once(socket, 'close')])))
  return sockets
}

const status = (port: number): Promise<number | undefined> =>
  new Promise((resolve, reject) => {
    const asked = request({ host: '127.0.0.1', port, agent: false }, response => {
      response.resume()
      resolve(response.statusCode)
    })
    asked.once('error', reject)
    asked.end()
  })

test('an error of a server that listens does not end the program', async () => {
  const made: Server[] = []
  const note = (message: unknown) => {
    if (typeof message === 'object' && message !== null && 'server' in message)
      if (message.server instanceof Server) made.push(message.server)
  }
  subscribe('tracing:net.server.listen:asyncStart', note)
  const told: Error[] = []
  const server = await serve({ ...options, problem: error => told.push(error) })
  unsubscribe('tracing:net.server.listen:asyncStart', note)
  try {
    const lacking = Object.assign(new Error('accept ENFILE'), { code: 'ENFILE' })
    for (const each of made) each.emit('error', lacking)
    expect(told.length).toBeGreaterThan(0)
    expect(await status(server.port)).toBe(200)
  } finally {
    await server.close()
  }
})

test('programs of other users cannot take all descriptors of the program by connecting', async () => {
  const server = await serve(options)
  try {
    const sockets = await opened(server.port, 200)
    await expect.poll(() => sockets.filter(({ readyState }) => readyState === 'open').length).toBe(64)
    for (const socket of sockets) socket.destroy()
    await expect.poll(() => status(server.port).catch(() => undefined)).toBe(200)
  } finally {
    await server.close()
  }
})

test('a connection that asks for nothing is closed', async () => {
  const server = await serve({ ...options, headTimeoutMs: 100 })
  try {
    const [silent] = await opened(server.port, 1)
    if (silent === undefined) throw new TypeError('no socket')
    const closed = once(silent, 'close')
    silent.resume()
    await closed
    expect(await status(server.port)).toBe(200)
  } finally {
    await server.close()
  }
})

test('a page that does not read costs little, and gets everything once it reads', async () => {
  const listeners = new Set<(message: string) => void>()
  let subscriptions = 0
  const feed = {
    subscribe(listener: (message: string) => void) {
      subscriptions += 1
      listeners.add(listener)
      listener(`whole ${subscriptions}`)
      return () => void listeners.delete(listener)
    },
  }
  const server = await serve({ ...options, feed })
  try {
    const asked = request({
      ...{ host: '127.0.0.1', port: server.port, path: '/events' },
      headers: { host: `127.0.0.1:${server.port}`, authorization: `Bearer ${keyOf(server.address)}` },
    }).end()
    const [response] = await once(asked, 'response')
    for (const each of [asked, response]) each.on('error', () => undefined)
    const change = 'x'.repeat(64 * 1024)
    for (let sent = 0; sent < 1024; sent++) for (const listener of listeners) listener(change)
    let heard = ''
    response.setEncoding('utf8')
    response.on('data', (part: string) => {
      heard += part
    })
    await expect.poll(() => heard.endsWith('whole 2\n')).toBe(true)
    expect(heard.startsWith('whole 1\n')).toBe(true)
    expect(heard.length).toBeLessThan(512 * change.length)
    asked.destroy()
    await expect.poll(() => listeners.size).toBe(0)
  } finally {
    await server.close()
  }
})
