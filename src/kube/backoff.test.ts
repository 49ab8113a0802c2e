import fc from 'fast-check'
import { expect, test } from 'vitest'
import { backoffMs, createBackoff } from './backoff.ts'
import { seededRandom } from './random.ts'

test('doubles from the first delay up to the last, without jitter', () => {
  const backoff = createBackoff({ initialMs: 800, maxMs: 30_000 })
  const delays = Array.from({ length: 8 }, () => backoff.next())
  expect(delays).toEqual([800, 1600, 3200, 6400, 12_800, 25_600, 30_000, 30_000])
  backoff.reset()
  expect(backoff.next()).toBe(800)
})

test('stays between the undisturbed delay and the maximum, however often it is asked', () => {
  fc.assert(
    fc.property(fc.nat({ max: 5_000 }), fc.integer(), (attempt, seed) => {
      const policy = { initialMs: 5, maxMs: 1_000_000 }
      const delay = backoffMs(attempt, policy, seededRandom(seed))
      expect(delay).toBeGreaterThanOrEqual(backoffMs(attempt, policy))
      expect(delay).toBeLessThanOrEqual(policy.maxMs)
    }),
  )
})

test('clients with different luck do not return in step', () => {
  const policy = { initialMs: 800, maxMs: 30_000 }
  const delays = new Set(Array.from({ length: 50 }, (_, seed) => backoffMs(2, policy, seededRandom(seed))))
  expect(delays.size).toBeGreaterThan(40)
})
