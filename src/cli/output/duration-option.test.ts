import { describe, expect, test } from 'vitest'
import { seconds } from './duration-option.ts'

describe('D19.durations: a time limit', () => {
  test.each([
    ['60', 60],
    ['0', 0],
    ['1.5', 1.5],
    ['90s', 90],
    ['2m', 120],
    ['1h30m', 5_400],
    ['1.5h', 5_400],
    ['500ms', 0.5],
    ['1m500ms', 60.5],
  ])('%s is %d s', (text, expected) => {
    expect(seconds(text)).toBeCloseTo(expected)
  })

  test.each(['', 'soon', '2 m', '-1s', '1d', 's', '1h-', '1e9h', '99999999999'])('%j is refused', text => {
    expect(() => seconds(text)).toThrow('must be a duration such as 90s')
  })
})
