import { describe, expect, test } from 'vitest'
import type { Stored } from '../../checkpoint/store.ts'
import { systemClock } from '../../kube/clock.ts'
import { LeftBehind, shareEncoding } from './share-encoding.ts'

const chunkBytes = 1024 * 1024
const generation = (dir: string) => ({ dir }) as Stored
const [base, next] = [generation('1'), generation('2')]

/** Encodes `count` chunks, each of one number. @param failAt the chunk that fails. */
function encoder(count: number, failAt?: number) {
  const seen = { begun: 0, made: 0, ended: 0 }
  const encode = shareEncoding(async function* (_base, _next, { signal } = {}) {
    seen.begun += 1
    try {
      for (let at = 0; at < count; at += 1) {
        signal?.throwIfAborted()
        if (at === failAt) throw new Error('no such page')
        seen.made += 1
        yield Buffer.alloc(chunkBytes, at)
        await new Promise(setImmediate)
      }
    } finally {
      seen.ended += 1
    }
  }, systemClock)
  return { encode, seen }
}

async function read(chunks: AsyncIterable<Buffer>): Promise<number[]> {
  const read: number[] = []
  for await (const chunk of chunks) read.push(chunk[0] ?? -1)
  return read
}

const numbers = (count: number) => Array.from({ length: count }, (_, at) => at)

describe('one encoding for all', () => {
  test('who ask for the same at the same time, and another for everything else', async () => {
    const { encode, seen } = encoder(40)
    const same = [read(encode(base, next)), read(encode(base, next)), read(encode(base, next))]
    const others = [read(encode(undefined, next)), read(encode(base, generation('3')))]
    for (const each of await Promise.all([...same, ...others])) expect(each).toEqual(numbers(40))
    expect(seen).toEqual({ begun: 3, made: 120, ended: 3 })
    // All readers have ended, so nothing stays buffered for later ones.
    expect(await read(encode(base, next))).toEqual(numbers(40))
    expect(seen.begun).toBe(4)
  })

  test('also for one who comes while its beginning is there, not for one who comes later', async () => {
    const { encode, seen } = encoder(40)
    const reader = encode(base, next)[Symbol.asyncIterator]()
    for (let count = 0; count < 5; count += 1) await reader.next()
    const early = read(encode(base, next))
    const rest = read({ [Symbol.asyncIterator]: () => reader })
    expect(await early).toEqual(numbers(40))
    expect(await rest).toEqual(numbers(40).slice(5))
    expect(seen.begun).toBe(1)

    const first = encode(base, next)[Symbol.asyncIterator]()
    for (let count = 0; count < 20; count += 1) await first.next()
    expect(await read(encode(base, next))).toEqual(numbers(40))
    expect(seen.begun).toBe(3)
    await first.return?.()
  })

  test('is made no faster than it is read', async () => {
    const { encode, seen } = encoder(100)
    const reader = encode(base, next)[Symbol.asyncIterator]()
    await reader.next()
    await new Promise(resolve => setTimeout(resolve, 50))
    expect(seen.made).toBe(1)
    await reader.return?.()
  })

  test('waits for somebody slow, but not for somebody who takes nothing', async () => {
    const { encode, seen } = encoder(100)
    const stuck = encode(base, next)[Symbol.asyncIterator]()
    await stuck.next()
    const slow = (async () => {
      const all: number[] = []
      for await (const chunk of encode(base, next)) {
        all.push(chunk[0] ?? -1)
        if (all.length % 10 === 0) await new Promise(resolve => setTimeout(resolve, 5))
      }
      return all
    })()
    expect(await read(encode(base, next))).toEqual(numbers(100))
    expect(await slow).toEqual(numbers(100))
    await expect(stuck.next()).rejects.toBeInstanceOf(LeftBehind)
    expect(seen).toEqual({ begun: 1, made: 100, ended: 1 })
  })

  test('fails for all', async () => {
    const { encode } = encoder(40, 20)
    const both = [read(encode(base, next)), read(encode(base, next))]
    for (const each of both) await expect(each).rejects.toThrow('no such page')
  })

  test('goes on when one of them leaves, and ends with the last', async () => {
    const { encode, seen } = encoder(40)
    const stop = new AbortController()
    const leaver = read(encode(base, next, { signal: stop.signal }))
    const stayer = encode(base, next)[Symbol.asyncIterator]()
    await stayer.next()
    stop.abort(new Error('promoted'))
    await expect(leaver).rejects.toThrow('promoted')
    for (let count = 1; count < 30; count += 1) expect((await stayer.next()).done).toBe(false)
    expect(seen).toMatchObject({ begun: 1, ended: 0 })
    await stayer.return?.()
    await expect.poll(() => seen.ended).toBe(1)
    expect(seen.made).toBeLessThan(40)
  })

  test('whose source hangs holds nobody who wants to go', async () => {
    const encode = shareEncoding(async function* () {
      yield Buffer.alloc(1)
      await new Promise(() => {})
    }, systemClock)
    const stop = new AbortController()
    const reading = read(encode(base, next, { signal: stop.signal }))
    await new Promise(resolve => setTimeout(resolve, 20))
    stop.abort(new Error('enough'))
    await expect(reading).rejects.toThrow('enough')
  })
})
