import { describe, expect, it } from 'vitest'
import { eventually } from '../../test/support/eventually.ts'
import { systemClock as clock } from '../kube/clock.ts'
import { silentLog } from '../kube/log.ts'
import { systemRandom as random } from '../kube/random.ts'
import { openStateStore } from './open.ts'
import { createRedisStore, parseRedisUrl } from './redis.ts'
import { StoreUnavailable } from './state-store.ts'
import { createRedisServer } from './testing/redis-server.ts'
import { createWriteBehind } from './write-behind.ts'

const open = (url: string, password?: string) =>
  createRedisStore({ url, password, ca: undefined }, silentLog, random)
const text = (bytes: Uint8Array | undefined) => bytes && Buffer.from(bytes).toString()
const minute = 60_000

describe('the URL of a Redis', () => {
  it('may name user, password, port and database', () => {
    expect(parseRedisUrl('rediss://me:s%2Fx@[fd00::1]:1234/3')).toEqual({
      host: 'fd00::1',
      port: 1234,
      db: 3,
      username: 'me',
      password: 's/x',
      tls: true,
    })
    expect(parseRedisUrl('redis://cache')).toEqual({ host: 'cache', port: 6379, db: 0, tls: false })
  })
  it.each(['http://cache', 'cache:6379', 'redis://', 'redis://cache/x', 'redis://u:secret@cache/0/1'])(
    '%s is refused without a word of what is in it',
    url => {
      expect(() => parseRedisUrl(url)).toThrow(/must be "memory", or a URL such as/)
      expect(() => parseRedisUrl(url)).not.toThrow(/secret/)
    },
  )
})

describe('a real Redis', () => {
  it('D9.redis: keeps, renews and forgets; killed, stopped, emptied and back again it costs an error or a value, never a wait', async () => {
    await using server = await createRedisServer('--requirepass', 'secret')
    const store = open(server.url, 'secret')
    try {
      await eventually(() => store.put('k', Buffer.from([0, 255, 13, 10]), minute))
      expect(await store.get('k')).toEqual(Buffer.from([0, 255, 13, 10]))
      expect(await store.touch('k', minute)).toBe(true)
      expect(await store.touch('other', minute)).toBe(false)
      await store.delete(['k'])
      expect(await store.get('k')).toBeUndefined()

      // Stopped: it accepts connections and never answers.
      server.stop()
      const late = store.put('k', Buffer.alloc(1000), minute)
      await expect(late).rejects.toBeInstanceOf(StoreUnavailable)
      await expect(store.get('k')).rejects.toBeInstanceOf(StoreUnavailable)
      server.resume()
      await eventually(() => store.put('k', Buffer.from('1'), minute))

      for (let round = 0; round < 3; round += 1) {
        await server.kill()
        await eventually(() => expect(store.get('k')).rejects.toBeInstanceOf(StoreUnavailable))
        await server.start()
        await eventually(() => store.put('k', Buffer.from('2'), minute))
      }
      expect(text(await store.get('k'))).toBe('2')
      await store.close()
      await expect(store.get('k')).rejects.toBeInstanceOf(StoreUnavailable)
    } finally {
      await store.close()
    }
  }, 180_000)

  it('a wrong password is an error, not a crash', async () => {
    await using server = await createRedisServer('--requirepass', 'secret')
    const store = open(server.url, 'wrong')
    await expect(store.get('k')).rejects.toBeInstanceOf(StoreUnavailable)
    await store.close()
  }, 60_000)

  it('D9.redis-sealed: what is written there can be neither read nor forged nor moved to another key', async () => {
    await using server = await createRedisServer()
    const options = { stateStore: server.url }
    const secret = random.bytes(32)
    const deps = { clock, log: silentLog, random }
    const store = await openStateStore(options, [secret], deps)
    const stranger = await openStateStore(options, [random.bytes(32)], deps)
    const exchanged = await openStateStore(options, [random.bytes(32), secret], deps)
    const plain = open(server.url)
    try {
      await eventually(() => store.put('a', Buffer.from('who am I'), minute))
      expect(text(await store.get('a'))).toBe('who am I')
      const box = await eventually(() => plain.get('a'))
      expect(Buffer.from(box ?? []).includes('who am I')).toBe(false)
      expect(await eventually(() => stranger.get('a'))).toBeUndefined()
      expect(text(await eventually(() => exchanged.get('a')))).toBe('who am I')
      await exchanged.put('c', Buffer.from('new'), minute)
      expect(await store.get('c')).toBeUndefined()
      await plain.put('b', box ?? Buffer.alloc(0), minute)
      expect(await store.get('b')).toBeUndefined()
      const forged = Buffer.from(box ?? Buffer.alloc(1))
      forged[forged.length - 1] = (forged.at(-1) ?? 0) ^ 1
      await plain.put('a', forged, minute)
      expect(await store.get('a')).toBeUndefined()
      await plain.put('a', Buffer.from('x'), minute)
      expect(await store.get('a')).toBeUndefined()
    } finally {
      await Promise.all([store, stranger, exchanged, plain].map(each => each.close()))
    }
  }, 60_000)

  it('D9.redis-behind: the last value of each key arrives, whatever the server went through meanwhile', async () => {
    await using server = await createRedisServer()
    const store = open(server.url)
    const behind = createWriteBehind(store, { clock, log: silentLog })
    const stop = new AbortController()
    const running = behind.run(stop.signal)
    try {
      let value = 0
      const next = () => {
        value += 1
        const now = Buffer.from(`${value}`)
        behind.keep('k', () => now)
      }
      const arrives = () => eventually(async () => expect(text(await store.get('k'))).toBe(`${value}`))
      next()
      await arrives()
      await server.kill()
      for (let i = 0; i < 1000; i += 1) next()
      expect(behind.pending()).toBe(1)
      await eventually(() => expect(behind.healthy()).toBe(false))
      await server.start()
      await arrives()
      expect(behind.healthy()).toBe(true)
      server.stop()
      next()
      await eventually(() => expect(behind.healthy()).toBe(false))
      server.resume()
      await arrives()
      behind.drop('k')
      await eventually(async () => expect(await store.get('k')).toBeUndefined())
    } finally {
      stop.abort()
      await running
      await store.close()
    }
  }, 180_000)
})
