import { describe, expect, it, test } from 'vitest'
import type { IntOrPercent } from '../../api/migration-controller-args.ts'
import { threshold } from './threshold.ts'

const percent = (value: number): IntOrPercent => ({ type: 'percent', value })
const number = (value: number): IntOrPercent => ({ type: 'number', value })

describe('PJ16: the threshold of a workload', () => {
  test.each([
    [1, 1, 1],
    [3, 1, 1],
    [4, 2, 1],
    [10, 2, 1],
    [11, 2, 1],
    [20, 2, 1],
    [21, 3, 2],
    [30, 3, 2],
    [100, 10, 5],
    [101, 11, 6],
  ])('of %i replicas is %i, and with 5%% it is %i', (replicas, standard, five) => {
    expect(threshold(replicas, undefined, 'Up')).toBe(standard)
    expect(threshold(replicas, percent(5), 'Up')).toBe(five)
  })

  it('is at most all, and 0 means none', () => {
    expect(threshold(3, number(7), 'Up')).toBe(3)
    expect(threshold(3, percent(150), 'Up')).toBe(3)
    expect(threshold(3, number(0), 'Up')).toBe(0)
  })
})

// The cases of TestGetMaxUnavailable in koordinator-sh/koordinator, pkg/descheduler/controllers/migration/util.
describe('rounding Down, as Koordinator counts', () => {
  test.each([
    [6, percent(80), 4],
    [6, percent(150), 6],
    [6, number(5), 5],
    [6, number(7), 6],
    [6, percent(1), 1],
    [6, number(0), 2],
  ])('%i replicas, %o: %i', (replicas, limit, most) => {
    expect(threshold(replicas, limit, 'Down')).toBe(most)
  })
})
