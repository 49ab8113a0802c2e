import { expect, it } from 'vitest'
import { thousandthsIn } from './quantity.ts'

it.each([
  ['1', 1_000],
  ['250m', 250],
  ['0.1', 100],
  ['1.5k', 1_500_000],
  ['1Ki', 1_024_000],
  ['2Gi', 2 ** 31 * 1_000],
  ['1e3', 1_000_000],
  ['1E', 1e21],
  ['12E2', 1_200_000],
  ['1n', 1],
  ['-5', -5_000],
  ['', undefined],
  ['1x', undefined],
  ['Ki', undefined],
] as const)('%s are %s thousandths', (text, thousandths) => {
  expect(thousandthsIn(text)).toBe(thousandths)
})
