import { once } from 'node:events'
import { connect, createServer } from 'node:http2'
import { type AddressInfo, connect as connectTcp, createServer as createTcp, type Socket } from 'node:net'
import { afterEach, expect, test } from 'vitest'
import { createFakeClock, type FakeClock, systemClock } from '../../kube/clock.ts'
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
  // Afterwards the server sends only answers to pings.
  await Promise.all([once(session, 'localSettings'), once(session, 'remoteSettings')])
  const hold = () => {
    for (const socket of sockets) {
      socket.unpipe()
      socket.pause()
    }
  }
  return { session, hold, pings: () => pings }
}

/** Lets one look happen, and then everything that the sockets have to deliver. */
const tick = async (clock: FakeClock) => {
  await clock.advance(1_000)
  await systemClock.sleep(5)
}

test('a connection that answers is asked again and again and stays', async () => {
  const { session, pings } = await startSession()
  const clock = createFakeClock()
  keepAlive(session, { clock, looks: 5 })
  for (let round = 1; round <= 5; round += 1) {
    const before = session.socket.bytesRead
    // The second look without a byte sends a ping.
    for (let look = 0; look < 2; look += 1) await clock.advance(1_000)
    await expect.poll(() => session.socket.bytesRead).toBeGreaterThan(before)
    expect(pings()).toBe(round)
    await clock.advance(1_000)
  }
  expect(session.destroyed).toBe(false)
})

test('D7.silent-source: a connection to nobody is given up after five looks, though nothing has closed it', async () => {
  const { session, hold, pings } = await startSession()
  const failed = new Promise<Error>(resolve => session.on('error', resolve))
  const clock = createFakeClock()
  keepAlive(session, { clock, looks: 5 })
  while (pings() < 1) await tick(clock)
  hold()
  const heldAt = clock.monotonic()
  while (!session.destroyed) await tick(clock)
  expect((await failed).message).toBe('no byte and no answer to pings for 5000 ms')
  // The answer to the ping may have arrived before the hold.
  expect(clock.monotonic() - heldAt).toBeLessThanOrEqual(6_000)
})

test('a look after a long stop of this process is one look', async () => {
  const { session } = await startSession()
  const clock = createFakeClock()
  keepAlive(session, { clock, everyMs: 3_600_000, looks: 2 })
  await clock.advance(3_600_000)
  expect(session.destroyed).toBe(false)
})
