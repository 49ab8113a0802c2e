import { expect, it } from 'vitest'
import { createFakeClock } from '../kube/clock.ts'
import { createStrandings } from './strandings.ts'

const stand = () => {
  const clock = createFakeClock()
  const strandings = createStrandings(clock)
  /** Returns the ms until this pod is replaced. */
  const left = (...uids: readonly string[]) => {
    const next = strandings.note(uids)
    return next && [next.uid, next.dueAt - clock.monotonic()]
  }
  return { clock, left, strandings, covered: () => strandings.note(undefined) }
}

it('replaces a hot backup once it has been stranded for 15 s without a break', async () => {
  const { clock, left } = stand()
  expect(left()).toBeUndefined()
  expect(left('a')).toEqual(['a', 15_000])
  await clock.advance(14_000)
  expect(left('a')).toEqual(['a', 1_000])
  expect(left()).toBeUndefined()
  expect(left('a')).toEqual(['a', 15_000])
})

it('replaces one at a time, and stays with its choice', () => {
  const { left } = stand()
  left('b', 'c')
  expect(left('a', 'b', 'c')).toEqual(['b', 15_000])
})

it('pauses before it replaces the next one, longer each time, until every slot has its heir', async () => {
  const { clock, left, covered } = stand()
  const pauses: unknown[] = []
  for (const uid of ['a', 'b', 'c', 'd', 'e', 'f']) {
    pauses.push(left(uid)?.[1])
    // The pod was deleted, and the next one has no node yet.
    left()
    await clock.advance(1_000)
  }
  expect(pauses).toEqual([15_000, 60_000, 120_000, 240_000, 480_000, 600_000])
  expect(covered()).toBeUndefined()
  expect(left('g')).toEqual(['g', 15_000])
})

it('replaces one where each slot has an heir, and not the next one, until each has an heir of its own', () => {
  const { covered, strandings } = stand()
  expect(strandings.note(['a'], true)?.uid).toBe('a')
  expect(strandings.note([], true)).toBeUndefined()
  expect(strandings.note(['b'], true)).toBeUndefined()
  expect(strandings.note(['b'], true)).toBeUndefined()
  expect(strandings.note(['b'], false)?.uid).toBe('b')
  covered()
  expect(strandings.note(['c'], true)?.uid).toBe('c')
})
