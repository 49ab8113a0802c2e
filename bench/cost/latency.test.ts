import { describe, expect, it } from 'vitest'
import { latenciesOf } from './latency.ts'

/** One request every ms. Requests during the freeze are answered at its end. */
const requests = Array.from({ length: 1_000 }, (_, due) => ({
  due,
  answered: due >= 500 && due < 550 ? 551 : due + 1,
}))

describe('latencies of an open load', () => {
  it('leaves out what the process had no chance to answer, and says how much that was', () => {
    const { p99, p99Outside, inside } = latenciesOf(requests, [{ from: 500, to: 551 }])
    expect(p99).toBeGreaterThan(40)
    expect(p99Outside).toBe(1)
    // One request was in flight when the freeze began, one was due as it ended.
    expect(inside).toBeCloseTo(0.053, 3)
  })

  it('leaves out nothing without a freeze', () => {
    expect(latenciesOf(requests, []).inside).toBe(0)
    expect(latenciesOf(requests, [{ from: 2_000, to: 2_010 }]).inside).toBe(0)
  })

  it('takes a slow answer after a freeze for slow', () => {
    const slow = [...requests.slice(0, 600), { due: 600, answered: 700 }]
    expect(latenciesOf(slow, [{ from: 500, to: 551 }]).inside).toBeCloseTo(53 / 601, 3)
  })

  it('tells the queue that a freeze leaves from what is slow for itself', () => {
    const freezes = [{ from: 0, to: 100 }]
    // All but the last two wait in the queue; the tenth is answered promptly, and the last is slow by itself.
    const queue = Array.from({ length: 9 }, (_, index) => ({ due: 101 + index, answered: 120 + index }))
    const later = [
      { due: 130, answered: 130.5 },
      { due: 131, answered: 138 },
    ]
    const seen = latenciesOf([...queue, ...later], freezes)
    expect(seen).toMatchObject({ inside: 0, p99Outside: 19, p99Undisturbed: 7 })
    expect(seen.queued).toBeCloseTo(9 / 11)
  })

  it('measures nothing of nothing', () => {
    expect(() => latenciesOf([], [])).toThrow(RangeError)
  })
})
