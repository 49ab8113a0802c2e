import { expect, it } from 'vitest'
import { slowStart } from './slow-start.ts'

const items = Array.from({ length: 100 }, (_, index) => index)

it('runs in batches of 8, 16, 32, 32 ..., and returns the results in order', async () => {
  const batches: number[] = []
  const mayGoOn = (batch: readonly number[]) => batches.push(batch.length) > 0
  expect(
    await slowStart(
      items,
      async item => item,
      () => true,
      mayGoOn,
    ),
  ).toEqual(items)
  expect(batches).toEqual([8, 16, 32, 32, 12])
})

it('stops after the first batch with a bad result, and when it may not continue', async () => {
  expect(
    await slowStart(
      items,
      async item => item,
      item => item !== 10,
    ),
  ).toHaveLength(24)
  expect(
    await slowStart(
      items,
      async item => item,
      () => true,
      batch => batch.length === 8,
    ),
  ).toHaveLength(8)
})
