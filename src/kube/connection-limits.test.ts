import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { afterEach, expect, it, vi } from 'vitest'
import { limitConnections, plainAddress } from './connection-limits.ts'

const closing: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})

async function start(limits: Parameters<typeof limitConnections>[1]) {
  const server = createServer(socket => socket.on('data', data => socket.write(data)))
  const limited = limitConnections(server, limits)
  await new Promise<void>(resolve => void server.listen(0, () => resolve()))
  closing.push(() => new Promise(resolve => void server.close(resolve)))
  const { port } = server.address() as AddressInfo
  const from = (localAddress: string) =>
    new Promise<Socket>((resolve, reject) => {
      const socket = connect({ port, host: '127.0.0.1', localAddress }, () => resolve(socket))
      socket.on('error', reject)
      closing.push(() => socket.destroy())
    })
  return { limited, from }
}

const echoes = (socket: Socket) =>
  new Promise<boolean>(resolve => {
    socket.once('data', () => resolve(true))
    socket.once('close', () => resolve(false))
    socket.write('?')
  })

it('a flood of silent connections goes, the oldest first, and who speaks is heard', async () => {
  const { limited, from } = await start({ forAll: 20, forEach: 5 })
  for (let i = 0; i < 200; i += 1) await from('127.0.0.1')
  expect(limited.count).toBeLessThanOrEqual(5)
  expect(await echoes(await from('127.0.0.1'))).toBe(true)
  expect(await echoes(await from('127.0.0.2'))).toBe(true)
})

it('many addresses share one limit', async () => {
  const { limited, from } = await start({ forAll: 20, forEach: 5 })
  for (let i = 1; i < 100; i += 1) await from(`127.0.0.${i}`)
  expect(limited.count).toBeLessThanOrEqual(20)
  expect(await echoes(await from('127.0.0.200'))).toBe(true)
})

it('addresses that nobody expects are not heard, and those that are known are not counted', async () => {
  const { limited, from } = await start({ forAll: 2, forEach: 2, mayConnect: it => it === '127.0.0.1' })
  expect(await echoes(await from('127.0.0.2'))).toBe(false)
  const known = await from('127.0.0.1')
  expect(await echoes(known)).toBe(true)
  expect(limited.count).toBe(1)
  limited.settle({ remoteAddress: '::ffff:127.0.0.1', remotePort: known.localPort })
  await vi.waitFor(() => expect(limited.count).toBe(0))
  for (let i = 0; i < 5; i += 1) await from('127.0.0.1')
  expect(await echoes(known)).toBe(true)
})

it('an address is the same on a socket of IPv6', () => {
  expect(plainAddress('::ffff:10.0.0.1')).toBe('10.0.0.1')
  expect(plainAddress('fd00::1')).toBe('fd00::1')
})
