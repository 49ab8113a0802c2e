import { expect, test } from 'vitest'
import { createFakeClock } from '../kube/clock.ts'
import { createPatience } from './patience.ts'

test('the generations and the time of each Migration are counted, and begin again with another target', async () => {
  const clock = createFakeClock()
  const patience = createPatience(clock)
  const at = (generation: number, target = 'x') => ({ target, generation })
  expect(patience.note('a', at(7))).toEqual({ generations: 1, ms: 0 })
  await clock.advance(1_000)
  expect(patience.note('a', at(7))).toEqual({ generations: 1, ms: 1_000 })
  expect(patience.note('a', at(8))).toEqual({ generations: 2, ms: 1_000 })
  expect(patience.note('b', at(8))).toEqual({ generations: 1, ms: 0 })
  expect(patience.note('a', undefined)).toBeUndefined()
  expect(patience.note('a', at(9))).toEqual({ generations: 1, ms: 0 })
  patience.keep(new Set(['b']))
  await clock.advance(500)
  expect(patience.note('a', at(9))).toEqual({ generations: 1, ms: 0 })
  expect(patience.note('b', at(8))).toEqual({ generations: 1, ms: 1_500 - 1_000 })
  // Another pod has the same generation, and did not have it before.
  expect(patience.note('b', at(8, 'y'))).toEqual({ generations: 1, ms: 0 })
})
