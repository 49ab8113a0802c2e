import { describe, expect, test } from 'vitest'
import { createFakeClock } from '../../kube/clock.ts'
import { createByteRate } from './byte-rate.ts'

const never = new AbortController().signal

describe('a byte rate', () => {
  test('lets a tenth of a second through at once, then as many bytes a second as it says', async () => {
    const clock = createFakeClock()
    const rate = createByteRate(1000, clock)
    const begin = clock.monotonic()
    const at: number[] = []
    const send = async () => {
      for (let sent = 0; sent < 1100; sent += 50) {
        await rate.take(50, never)
        at.push(clock.monotonic() - begin)
      }
    }
    const sent = send()
    await clock.advance(10_000)
    await sent
    expect(at.slice(0, 4)).toEqual([0, 0, 50, 100])
    expect(at.at(-1)).toBe(1000)
  })

  test('is one for all, in their order', async () => {
    const clock = createFakeClock()
    const rate = createByteRate(1000, clock)
    const order: string[] = []
    const send = async (name: string) => {
      await rate.take(100, never)
      order.push(`${name} at ${clock.monotonic() - 1000}`)
    }
    const all = Promise.all(['a', 'b', 'c'].map(send))
    await clock.advance(1000)
    await all
    expect(order).toEqual(['a at 0', 'b at 100', 'c at 200'])
  })

  test('a pause saves up no more than a tenth of a second', async () => {
    const clock = createFakeClock()
    const rate = createByteRate(1000, clock)
    await clock.advance(60_000)
    await rate.take(100, never)
    const stop = new AbortController()
    const late = rate.take(1, stop.signal)
    await clock.untilSleepers(1)
    stop.abort(new Error('enough'))
    await expect(late).rejects.toThrow('enough')
    await clock.advance(60_000)
    await expect(rate.take(1, stop.signal)).rejects.toThrow('enough')
  })
})
