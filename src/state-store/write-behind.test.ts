import { describe, expect, it, vi } from 'vitest'
import { createFakeClock } from '../kube/clock.ts'
import { silentLog } from '../kube/log.ts'
import { createMemoryStore } from './memory.ts'
import type { StateStore } from './state-store.ts'
import { createWriteBehind } from './write-behind.ts'

function setup() {
  const clock = createFakeClock()
  const memory = createMemoryStore(clock)
  const puts: string[] = []
  const store: StateStore = {
    ...memory,
    durable: true,
    async put(key, value, ttlMs) {
      puts.push(`${key}=${Buffer.from(value)}`)
      await memory.put(key, value, ttlMs)
    },
  }
  const behind = createWriteBehind(store, { clock, log: silentLog })
  const stop = new AbortController()
  const running = behind.run(stop.signal)
  const end = () => {
    stop.abort()
    return running
  }
  return { clock, memory, puts, behind, end }
}
const settle = () => new Promise(resolve => setImmediate(resolve))

describe('writing behind', () => {
  it('D9.flushed: what the store has lost is written again, and nothing else is', async () => {
    const { clock, memory, puts, behind, end } = setup()
    behind.keep('a', () => Buffer.from('1'))
    behind.keep('b', () => Buffer.from('2'))
    await vi.waitFor(() => expect(puts).toEqual(['a=1', 'b=2']))
    await memory.delete(['a'])
    await settle()
    await clock.advance(30_000)
    await vi.waitFor(() => expect(puts).toEqual(['a=1', 'b=2', 'a=1']))
    await end()
  })

  it('keys that another process looks after are left alone', async () => {
    const { clock, memory, puts, behind, end } = setup()
    behind.keep('a', () => Buffer.from('1'))
    await vi.waitFor(() => expect(puts).toEqual(['a=1']))
    behind.abandon()
    behind.drop('a')
    await settle()
    await clock.advance(60_000)
    await settle()
    expect(await memory.get('a')).toEqual(Buffer.from('1'))
    expect(puts).toEqual(['a=1'])
    await end()
  })

  it('what nobody renews is gone after its time', async () => {
    const { clock, memory, end } = setup()
    await memory.put('x', Buffer.from('1'), 1_000)
    expect(await memory.touch('x', 2_000)).toBe(true)
    await clock.advance(1_500)
    expect(await memory.get('x')).toBeDefined()
    await clock.advance(1_000)
    expect(await memory.get('x')).toBeUndefined()
    expect(await memory.touch('x', 1)).toBe(false)
    await end()
  })
})
