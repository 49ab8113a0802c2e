import { describe, expect, test } from 'vitest'
import { createFakeClock } from '../../kube/clock.ts'
import { createWatchdog } from './watchdog.ts'

const start = () => {
  const clock = createFakeClock()
  let silences = 0
  const watchdog = createWatchdog({
    clock,
    ms: 100,
    onSilence: () => {
      silences += 1
    },
  })
  return { clock, watchdog, silences: () => silences }
}

describe('a watchdog', () => {
  test('speaks once, after so much silence', async () => {
    const { clock, watchdog, silences } = start()
    watchdog.watch()
    await clock.advance(99)
    expect(silences()).toBe(0)
    await clock.advance(1)
    expect(silences()).toBe(1)
    await clock.advance(10_000)
    expect(silences()).toBe(1)
    expect(clock.sleepers()).toBe(0)
  })

  test('each sign of life begins the silence anew', async () => {
    const { clock, watchdog, silences } = start()
    for (let sign = 0; sign < 10; sign += 1) {
      watchdog.watch()
      await clock.advance(90)
    }
    expect(silences()).toBe(0)
    await clock.advance(10)
    expect(silences()).toBe(1)
  })

  test('our own turn does not count', async () => {
    const { clock, watchdog, silences } = start()
    await clock.advance(500)
    watchdog.watch()
    await clock.advance(50)
    watchdog.rest()
    await clock.advance(5_000)
    watchdog.watch()
    await clock.advance(99)
    expect(silences()).toBe(0)
    await clock.advance(101)
    expect(silences()).toBe(1)
  })

  test('leaves nothing behind when it is stopped', async () => {
    const { clock, watchdog, silences } = start()
    watchdog.watch()
    await clock.untilSleepers(1)
    watchdog.stop()
    await clock.advance(1000)
    expect(silences()).toBe(0)
    expect(clock.sleepers()).toBe(0)
  })
})
