import { expect, it } from 'vitest'
import { conditionLimits, refusedPauseMs, setCondition } from './conditions.ts'

const ready = { type: 'Ready', reason: 'PodsReady', message: '', observedGeneration: 1 } as const
const at = (second: number) => Date.UTC(2030, 0, 1, 0, 0, second, 400)

it('a condition keeps its place, and its time while its status lasts', () => {
  const first = setCondition([], { ...ready, status: 'True', now: at(1) })
  const both = setCondition(first, { ...ready, type: 'Paused', status: 'False', now: at(1) })
  const later = setCondition(both, { ...ready, status: 'True', message: 'still', now: at(2) })
  expect(later.map(({ type, message }) => [type, message])).toEqual([
    ['Ready', 'still'],
    ['Paused', ''],
  ])
  expect(later[0]?.lastTransitionTime).toBe('2030-01-01T00:00:01Z')
  const [changed] = setCondition(later, { ...ready, status: 'False', now: at(3) })
  expect(changed?.lastTransitionTime).toBe('2030-01-01T00:00:03Z')
})

it('texts are cut to what the API server accepts', () => {
  const long = { reason: 'r'.repeat(2_000), message: 'm'.repeat(50_000) }
  const [condition] = setCondition([], { ...ready, ...long, status: 'True', now: 0 })
  expect(condition?.reason).toHaveLength(conditionLimits.reason)
  expect(condition?.message).toHaveLength(conditionLimits.message)
})

it('MP-29: a refused write is tried again after 1 s, then after twice as long each time, and every 5 minutes in the end', () => {
  const since = { lastTransitionTime: '2030-01-01T00:00:00Z' }
  const begun = Date.parse(since.lastTransitionTime)
  const times: number[] = []
  for (let now = begun; now < begun + 3_600_000; now += times.at(-1) ?? 0)
    times.push(refusedPauseMs(since, now))
  expect(times.slice(0, 5)).toEqual([1_000, 1_000, 2_000, 4_000, 8_000])
  expect(times.slice(-5)).toEqual(Array.from({ length: 5 }, () => 300_000))
  expect(times.length).toBeLessThan(25)
  // Clocks jump, and others write conditions.
  expect(refusedPauseMs(since, begun - 60_000)).toBe(1_000)
  expect(refusedPauseMs({ lastTransitionTime: 'now' }, begun)).toBe(1_000)
  expect(refusedPauseMs(undefined, begun)).toBe(1_000)
})
