import { describe, expect, test } from 'vitest'
import { createFakeClock } from './clock.ts'
import { createQueue, type QueueGauges } from './queue.ts'

const setup = () => {
  const clock = createFakeClock()
  return { clock, queue: createQueue({ clock, name: 'test' }) }
}

/** The keys that can be taken now, in order; they stay in work. */
const takeAll = async (queue: ReturnType<typeof createQueue>): Promise<string[]> => {
  const keys: string[] = []
  while (queue.depth() > 0) {
    const item = await Promise.race([queue.take(), Promise.resolve('nothing' as const)])
    if (item === 'nothing' || item === undefined) break
    keys.push(item.key)
  }
  return keys
}

describe('queue', () => {
  test('hands out keys first come, first served', async () => {
    const { queue } = setup()
    for (const key of ['a', 'b', 'c']) queue.add(key)
    expect(await takeAll(queue)).toEqual(['a', 'b', 'c'])
  })

  test('keeps a key once, with the higher priority', async () => {
    const { queue } = setup()
    queue.add('a')
    queue.add('b')
    queue.add('c', { priority: 5 })
    queue.add('b', { priority: 9 })
    queue.add('b', { priority: 1 })
    expect(queue.depth()).toBe(3)
    expect(await queue.take()).toEqual({ key: 'b', priority: 9 })
    expect(await takeAll(queue)).toEqual(['c', 'a'])
  })

  test('a key added while it is worked on waits for done, and then runs once more', async () => {
    const { queue } = setup()
    queue.add('a')
    await queue.take()
    queue.add('a')
    queue.add('a')
    let taken: string | undefined
    const next = queue.take().then(item => {
      taken = item?.key
    })
    await Promise.resolve()
    expect(taken).toBeUndefined()
    queue.done('a')
    await next
    expect(taken).toBe('a')
    queue.done('a')
    expect(queue.depth()).toBe(0)
  })

  test('one that waits for urgent keys gets nothing else, and gets them first', async () => {
    const { queue } = setup()
    const got: string[] = []
    const note = (who: string) => (item: { key: string } | undefined) => got.push(`${who} ${item?.key}`)
    void queue.take().then(note('any'))
    void queue.take(undefined, 10).then(note('urgent'))
    queue.add('a')
    queue.add('b')
    await Promise.resolve()
    expect(got).toEqual(['any a'])
    queue.add('c', { priority: 10 })
    await Promise.resolve()
    expect(got).toEqual(['any a', 'urgent c'])
    // A delayed key may become urgent.
    void queue.take(undefined, 10).then(note('urgent'))
    queue.add('b', { priority: 10 })
    await Promise.resolve()
    expect(got.at(-1)).toBe('urgent b')
  })

  test('says with which priority a key in work waits for its next turn', async () => {
    const { queue, clock } = setup()
    queue.add('a')
    await queue.take()
    expect(queue.pressing('a')).toBeUndefined()
    queue.add('a', { afterMs: 100, priority: 4 })
    expect(queue.pressing('a')).toBeUndefined()
    await clock.advance(100)
    expect(queue.pressing('a')).toBe(4)
    queue.done('a')
    expect(queue.pressing('a')).toBeUndefined()
  })

  test('hands a key to a waiting worker without any timer', async () => {
    const { queue, clock } = setup()
    const taken = queue.take()
    queue.add('a')
    expect(clock.sleepers()).toBe(0)
    expect((await taken)?.key).toBe('a')
  })

  test('a delayed key appears when its time has come; the shorter delay wins', async () => {
    const { queue, clock } = setup()
    queue.add('late', { afterMs: 1000 })
    queue.add('soon', { afterMs: 1000 })
    queue.add('soon', { afterMs: 10 })
    queue.add('soon', { afterMs: 5000 })
    expect(queue.depth()).toBe(0)
    await clock.advance(9)
    expect(queue.depth()).toBe(0)
    await clock.advance(1)
    expect(await takeAll(queue)).toEqual(['soon'])
    await clock.advance(990)
    expect(await takeAll(queue)).toEqual(['late'])
    expect(clock.sleepers()).toBe(0)
  })

  test('adding without a delay cancels the delay', async () => {
    const { queue, clock } = setup()
    queue.add('a', { afterMs: 1000 })
    queue.add('a')
    expect(await takeAll(queue)).toEqual(['a'])
    queue.done('a')
    await clock.advance(2000)
    expect(queue.depth()).toBe(0)
  })

  test('of keys that are due together the higher priority comes first', async () => {
    const { queue, clock } = setup()
    const first = queue.take()
    queue.add('low', { afterMs: 10 })
    queue.add('high', { afterMs: 10, priority: 1 })
    await clock.advance(10)
    expect((await first)?.key).toBe('high')
  })

  test('failures of one key back off from 5 ms to 1000 s, and forget starts again', () => {
    const { queue } = setup()
    const delays = Array.from({ length: 20 }, () => queue.addRateLimited('a'))
    expect(delays.slice(0, 4)).toEqual([5, 10, 20, 40])
    expect(delays.at(-1)).toBe(1_000_000)
    expect(queue.failures('a')).toBe(20)
    expect(queue.addRateLimited('b')).toBe(5)
    queue.forget('a')
    expect(queue.addRateLimited('a')).toBe(5)
    expect(queue.addRateLimited('a', { atLeastMs: 3000 })).toBe(3000)
  })

  test('an aborted take leaves the key for the next one', async () => {
    const { queue } = setup()
    const stop = new AbortController()
    const aborted = queue.take(stop.signal)
    stop.abort()
    expect(await aborted).toBeUndefined()
    queue.add('a')
    expect(await queue.take(stop.signal)).toBeUndefined()
    expect((await queue.take())?.key).toBe('a')
  })

  test('shutdown ends waiting takers, hands out nothing more and ignores adds', async () => {
    const { queue, clock } = setup()
    queue.add('later', { afterMs: 100 })
    const taken = queue.take()
    queue.shutdown()
    expect(await taken).toBeUndefined()
    queue.add('a')
    expect(queue.depth()).toBe(0)
    expect(await queue.take()).toBeUndefined()
    expect(clock.sleepers()).toBe(0)
  })

  test('drain waits for the keys in work, up to its signal', async () => {
    const { queue } = setup()
    queue.add('a')
    queue.add('b')
    await queue.take()
    const impatient = new AbortController()
    const first = queue.drain(impatient.signal)
    const second = queue.drain()
    impatient.abort()
    expect(await first).toBe(false)
    queue.done('a')
    expect(await second).toBe(true)
    expect(await queue.take()).toBeUndefined()
  })

  test('done of a key that nobody took is a bug that shows', () => {
    expect(() => setup().queue.done('a')).toThrow('a is not being processed')
  })

  test('reports what dashboards of workqueue_* need', async () => {
    const clock = createFakeClock()
    const seen: [string, ...unknown[]][] = []
    let read: (() => QueueGauges) | undefined
    const queue = createQueue({
      clock,
      name: 'q',
      metrics: {
        added: (...args) => seen.push(['added', ...args]),
        taken: (...args) => seen.push(['taken', ...args]),
        done: (...args) => seen.push(['done', ...args]),
        retried: (...args) => seen.push(['retried', ...args]),
        gauges: (_, gauges) => {
          read = gauges
        },
      },
    })
    queue.add('a')
    queue.add('a')
    queue.add('b', { priority: 3 })
    await clock.advance(2000)
    await queue.take()
    await clock.advance(500)
    queue.add('b')
    expect(read?.()).toEqual({
      depth: new Map([[0, 2]]),
      runningSeconds: [0.5],
    })
    queue.done('b')
    queue.addRateLimited('c')
    expect(seen).toEqual([
      ['added', 'q'],
      ['added', 'q'],
      ['taken', 'q', 2],
      ['added', 'q'],
      ['done', 'q', 0.5],
      ['retried', 'q'],
    ])
  })
})
