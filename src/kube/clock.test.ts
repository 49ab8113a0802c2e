import { describe, expect, test } from 'vitest'
import { createFakeClock, systemClock } from './clock.ts'
import { seededRandom, systemRandom } from './random.ts'

describe('system clock', () => {
  test('a sleep ends with the reason of its signal, before or while it lasts', async () => {
    await expect(systemClock.sleep(60_000, AbortSignal.abort('early'))).rejects.toBe('early')
    const controller = new AbortController()
    const sleeping = systemClock.sleep(60_000, controller.signal)
    controller.abort('late')
    await expect(sleeping).rejects.toBe('late')
  })

  test('a sleep of more than 25 days does not end at once', async () => {
    const controller = new AbortController()
    let woke = false
    const sleeping = systemClock.sleep(2 ** 40, controller.signal).then(
      () => {
        woke = true
      },
      () => {},
    )
    await systemClock.sleep(5)
    controller.abort()
    await sleeping
    expect(woke).toBe(false)
  })
})

describe('fake clock', () => {
  test('wakes sleepers in the order of their times, also those that sleep again', async () => {
    const clock = createFakeClock()
    const seen: string[] = []
    const begin = clock.monotonic()
    const tick = async (name: string, ms: number) => {
      for (let i = 0; i < 2; i++) {
        await clock.sleep(ms)
        seen.push(`${name}@${clock.monotonic() - begin}`)
      }
    }
    const running = [tick('slow', 30), tick('fast', 20)]
    await clock.untilSleepers(2)
    await clock.advance(25)
    expect(seen).toEqual(['fast@20'])
    await clock.advance(35)
    expect(seen).toEqual(['fast@20', 'slow@30', 'fast@40', 'slow@60'])
    await Promise.all(running)
    expect(clock.sleepers()).toBe(0)
  })

  test('a jump moves the wall clock alone', () => {
    const clock = createFakeClock({ now: 5_000, monotonic: 10 })
    clock.jump(-3_600_000)
    expect(clock.now()).toBe(-3_595_000)
    expect(clock.monotonic()).toBe(10)
  })

  test('an aborted sleeper is no longer counted', async () => {
    const clock = createFakeClock()
    const controller = new AbortController()
    const sleeping = clock.sleep(10, controller.signal)
    controller.abort('stop')
    await expect(sleeping).rejects.toBe('stop')
    expect(clock.sleepers()).toBe(0)
  })
})

describe('random', () => {
  test('a seed repeats its sequence, another seed has another', () => {
    const draw = (seed: number) => {
      const random = seededRandom(seed)
      return [random.next(), random.next(), ...random.bytes(4)]
    }
    expect(draw(7)).toEqual(draw(7))
    expect(draw(7)).not.toEqual(draw(8))
  })

  test('both sources stay within [0, 1)', () => {
    for (const random of [systemRandom, seededRandom(1)]) {
      for (let i = 0; i < 1_000; i++) {
        const value = random.next()
        expect(value).toBeGreaterThanOrEqual(0)
        expect(value).toBeLessThan(1)
      }
    }
  })
})
