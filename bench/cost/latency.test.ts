import { describe, expect, it } from 'vitest'
import { latenciesOf } from './latency.ts'

/** One request every ms; those that fall into the freeze are answered at its end. */
const requests = Array.from({ length: 1_000 }, (_, due) => ({
  due,
  answered: due >= 500 && due < 550 ? 551 : due + 1,
}))

describe('latencies of an open load', () => {
  it('leaves out what the process had no chance to answer, and says how much that was', () => {
    const { p99, p99Outside, inside } = latenciesOf(requests, [{ from: 500, to: 551 }])
    expect(p99).toBeGreaterThan(40)
    expect(p99Outside).toBe(1)
    // One was on its way when the freeze began, one was due as it ended.
    expect(inside).toBeCloseTo(0.053, 3)
  })

  it('leaves out nothing without a freeze', () => {
    expect(latenciesOf(requests, []).inside).toBe(0)
    expect(latenciesOf(requests, [{ from: 2_000, to: 2_010 }]).inside).toBe(0)
  })

  it('takes a slow answer after a freeze for slow', () => {
    const slow = [...requests.slice(0, 600), { due: 600, answered: 700 }]
    expect(latenciesOf(slow, [{ from: 500, to: 551 }]).inside).toBeCloseTo(53 / 601, 3)
    expect(latenciesOf([{ due: 600, answered: 700 }], [{ from: 500, to: 551 }]).p99Outside).toBe(100)
  })

  it('measures nothing of nothing', () => {
    expect(() => latenciesOf([], [])).toThrow(RangeError)
  })
})
