import { expect, it } from 'vitest'
import { createFakeClock } from '../kube/clock.ts'
import { createSetbacks } from './setbacks.ts'

it('a pod that failed on stage is passed over for a minute, then for twice as long, and at most for ten minutes', async () => {
  const clock = createFakeClock()
  const setbacks = createSetbacks(clock)
  for (const pauseMs of [60_000, 120_000, 240_000, 480_000, 600_000, 600_000]) {
    setbacks.note('p', 'torn')
    await clock.advance(pauseMs - 1)
    expect(setbacks.of('p')).toBe('torn')
    await clock.advance(1)
    expect(setbacks.of('p')).toBeUndefined()
  }
  setbacks.forget('p')
  setbacks.note('p', 'torn')
  await clock.advance(60_000)
  expect(setbacks.of('p')).toBeUndefined()
})
