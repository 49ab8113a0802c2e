import { setTimeout as sleep } from 'node:timers/promises'
import { beforeAll, describe, expect, it } from 'vitest'
import { createRedisServer, type RedisServer } from '../../src/state-store/testing/redis-server.ts'
import { buildLoader } from './load.ts'

describe('the load on a real redis', () => {
  const signal = AbortSignal.timeout(120_000)
  let load: Awaited<ReturnType<typeof buildLoader>>
  beforeAll(async () => {
    load = await buildLoader()
  }, 120_000)

  async function targetOf(server: RedisServer) {
    const pid = Number(/process_id:(\d+)/.exec(await server.command('INFO server'))?.[1])
    return { host: '127.0.0.1', port: server.port, keys: 100, pid }
  }

  it('is what was ordered, read and written by halves', async () => {
    await using server = await createRedisServer()
    const { perSecond, freezes, inside } = await load(
      await targetOf(server),
      { perSecond: 4_000, seconds: 1 },
      signal,
    )
    expect(perSecond).toBeGreaterThan(3_000)
    expect(freezes).toEqual([])
    expect(inside).toBe(0)
    const calls = async (name: string) =>
      Number(new RegExp(`cmdstat_${name}:calls=(\\d+)`).exec(await server.command('INFO commandstats'))?.[1])
    const [read, written] = [await calls('get'), await calls('set')]
    expect(read + written).toBe(4_000)
    expect(Math.abs(read - written)).toBeLessThan(600)
  })

  it('goes on while redis stands still, and tells for how long it did', async () => {
    await using server = await createRedisServer()
    const loaded = load(await targetOf(server), { perSecond: 2_000, seconds: 2 }, signal)
    await sleep(500)
    server.stop()
    await sleep(300)
    server.resume()
    const { freezes, p99, inside } = await loaded
    expect(freezes).toHaveLength(1)
    expect(freezes[0]).toBeGreaterThan(250)
    expect(p99).toBeGreaterThan(200)
    expect(inside).toBeGreaterThan(0.1)
  })

  it('ends with what redis complains of', async () => {
    await using server = await createRedisServer('--requirepass', 'secret')
    const target = { host: '127.0.0.1', port: server.port, keys: 100, pid: process.pid }
    await expect(load(target, { perSecond: 100, seconds: 1 }, signal)).rejects.toThrow('NOAUTH')
  })
})
