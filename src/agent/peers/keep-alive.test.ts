import { connect, createServer } from 'node:http2'
import { type AddressInfo, connect as connectTcp, createServer as createTcp, type Socket } from 'node:net'
import { afterEach, expect, test } from 'vitest'
import { systemClock } from '../../kube/clock.ts'
import { keepAlive } from './keep-alive.ts'

const closing: (() => unknown)[] = []
afterEach(() => {
  for (const close of closing.splice(0).reverse()) close()
})

/** Returns a client of a server behind a proxy that can stall without closing. */
const startSession = async () => {
  let pings = 0
  const server = createServer()
  server.on('session', session => session.on('ping', () => (pings += 1)))
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', () => resolve()))
  const sockets: Socket[] = []
  const wire = createTcp(near => {
    const far = connectTcp((server.address() as AddressInfo).port, '127.0.0.1')
    near.pipe(far).pipe(near)
    for (const socket of [near, far]) {
      sockets.push(socket)
      socket.on('error', () => {})
    }
  })
  await new Promise<void>(resolve => wire.listen(0, '127.0.0.1', resolve))
  const session = connect(`http://127.0.0.1:${(wire.address() as AddressInfo).port}`)
  closing.push(
    () => server.close(),
    () => wire.close(),
    () => {
      for (const socket of sockets) socket.destroy()
    },
    () => session.destroy(),
  )
  const hold = () => {
    for (const socket of sockets) {
      socket.unpipe()
      socket.pause()
    }
  }
  return { session, hold, pings: () => pings }
}

test('a connection that answers is asked again and again and stays', async () => {
  const { session, pings } = await startSession()
  keepAlive(session, { clock: systemClock, everyMs: 1, patienceMs: 60_000 })
  await expect.poll(pings, { timeout: 30_000 }).toBeGreaterThan(5)
  expect(session.destroyed).toBe(false)
})

test('a connection to nobody is given up, though nothing has closed it', async () => {
  const { session, hold, pings } = await startSession()
  const failed = new Promise<Error>(resolve => session.on('error', resolve))
  keepAlive(session, { clock: systemClock, everyMs: 1, patienceMs: 200 })
  await expect.poll(pings, { timeout: 30_000 }).toBeGreaterThan(1)
  hold()
  expect((await failed).message).toBe('no answer to pings for 200 ms')
  expect(session.destroyed).toBe(true)
})
