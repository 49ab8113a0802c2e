import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { median, percentile, summarise } from './statistics.ts'

const values = fc.array(fc.double({ noNaN: true, noDefaultInfinity: true, min: -1e6, max: 1e6 }), {
  minLength: 1,
})

describe('statistics', () => {
  it('takes the middle, or the mean of the two in the middle', () => {
    expect(median([3, 1, 2])).toBe(2)
    expect(median([4, 1, 3, 2])).toBe(2.5)
    expect(median([7])).toBe(7)
  })

  it('takes percentiles by nearest rank', () => {
    const hundred = Array.from({ length: 100 }, (_, i) => 100 - i)
    expect(percentile(hundred, 95)).toBe(95)
    expect(percentile(hundred, 99)).toBe(99)
    expect(percentile([1, 2, 3, 4, 5, 6, 7, 8, 9, 10], 95)).toBe(10)
    expect(percentile([5, 1], 50)).toBe(1)
  })

  it('never claims anything about nothing', () => {
    expect(() => summarise([])).toThrow('no measured values')
    expect(() => summarise([1, Number.NaN])).toThrow('not a measured value')
    expect(() => percentile([1], 0)).toThrow(RangeError)
  })

  it('only returns measured values as percentiles, in order, and changes nothing', () => {
    fc.assert(
      fc.property(values, all => {
        const before = [...all]
        const { n, median: middle, p95, p99, max } = summarise(all)
        expect(all).toEqual(before)
        expect(n).toBe(all.length)
        expect(all).toContain(p95)
        expect(all).toContain(p99)
        expect(max).toBe(Math.max(...all))
        expect(middle <= p95 && p95 <= p99 && p99 <= max).toBe(true)
      }),
    )
  })
})
