import { expect, it } from 'vitest'
import { createFakeClock } from '../../kube/clock.ts'
import { createEarlyEnds } from './early-ends.ts'

const newest = { epoch: 1, generation: 7 }

function stand() {
  const clock = createFakeClock()
  const ends = createEarlyEnds(clock)
  const isBarred = (uid = 'u') => ends.barredUntil(uid, newest) !== undefined
  return { clock, ends, isBarred }
}

it('bar a generation from the second on, in that pod alone', () => {
  const { clock, ends, isBarred } = stand()
  ends.note('u', 'first', newest)
  // The same end, seen twice.
  ends.note('u', 'first', newest)
  expect(isBarred()).toBe(false)
  ends.note('u', 'second', newest)
  expect(ends.barredUntil('u', newest)).toBe(clock.now() + 30_000)
  expect(isBarred('other')).toBe(false)
  expect(ends.barredUntil('u', { ...newest, generation: 6 })).toBeUndefined()
})

it('bar it for 30 s, and for twice as long after each further end, up to 10 min', async () => {
  const { clock, ends, isBarred } = stand()
  ends.note('u', '1', newest)
  for (const [at, seconds] of [30, 60, 120, 240, 480, 600, 600].entries()) {
    ends.note('u', `${at + 2}`, newest)
    await clock.advance(seconds * 1_000 - 1)
    expect(isBarred(), `end ${at + 2}`).toBe(true)
    await clock.advance(1)
    expect(isBarred(), `end ${at + 2}`).toBe(false)
  }
})

it('count by a clock that does not jump', async () => {
  const { clock, ends, isBarred } = stand()
  for (const containers of ['1', '2']) ends.note('u', containers, newest)
  clock.jump(3_600_000)
  expect(isBarred()).toBe(true)
  clock.jump(-7_200_000)
  await clock.advance(30_000)
  expect(isBarred()).toBe(false)
})

it('are forgotten with their pod', () => {
  const { ends, isBarred } = stand()
  for (const containers of ['1', '2']) ends.note('u', containers, newest)
  ends.keep(new Set(['u']))
  expect(isBarred()).toBe(true)
  ends.keep(new Set())
  expect(isBarred()).toBe(false)
})
