import { expect, it } from 'vitest'
import { type Answering, createUnsavedWatch } from './unsaved.ts'

const intervalMs = 3_000
/** Two intervals, a minute for a slow holder, and twelve seconds for news. */
const quietMs = 78_000
const primary: Answering = { pod: 'p0', genesis: 'g1', savedUntil: undefined, works: true, quiet: true }

/** Looks each half second, and returns the time of the first violation; undefined: there is none. */
function violatedAt(untilMs: number, at: (now: number) => readonly Answering[]): number | undefined {
  const watch = createUnsavedWatch(1)
  for (let now = 500; now <= untilMs; now += 500)
    if (watch.look(now, intervalMs, at(now)).some(({ ms, limitMs }) => ms > limitMs)) return now
  return undefined
}

it('a primary that answers, and is not saved although nothing fails, is noticed', () => {
  expect(violatedAt(600_000, () => [primary])).toBe(500 + quietMs + 500)
  // It was saved at first.
  expect(violatedAt(600_000, now => [{ ...primary, savedUntil: Math.min(now, 20_000) }])).toBe(
    20_000 + quietMs + 500,
  )
  // A copy of the app that ran in the pod before is none of this one; the look has it under another genesis.
  const restarted = (now: number) =>
    now < 40_000 ? { ...primary, savedUntil: now } : { ...primary, genesis: 'g2' }
  expect(violatedAt(600_000, now => [restarted(now)])).toBe(40_000 + quietMs + 500)
})

it('where another node fails it has five minutes more', () => {
  expect(violatedAt(600_000, () => [{ ...primary, quiet: false }])).toBe(500 + 300_000 + quietMs + 500)
  // The fault ends.
  expect(violatedAt(600_000, now => [{ ...primary, quiet: now > 100_000 }])).toBe(100_000 + quietMs + 500)
})

it('one that is saved, or cannot be, is not', () => {
  expect(violatedAt(600_000, now => [{ ...primary, savedUntil: now - 70_000 }])).toBeUndefined()
  expect(violatedAt(600_000, () => [{ ...primary, works: false, quiet: false }])).toBeUndefined()
  // It does not answer for a moment: it is stopped, or another app runs there.
  expect(violatedAt(600_000, now => (now % 60_000 === 0 ? [] : [primary]))).toBeUndefined()
  expect(
    violatedAt(600_000, now => [{ ...primary, genesis: `g${Math.floor(now / 60_000)}` }]),
  ).toBeUndefined()
})
