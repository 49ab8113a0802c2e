import { describe, expect, it } from 'vitest'
import type { Call } from '../../drill/history.ts'
import { accountOf } from './ledger.ts'

const call = (end: number, count?: number): Call => ({
  ...{ type: 'call', client: 'fresh', slot: 0, word: `w${end}`, start: end - 1, end },
  ...(count === undefined
    ? { error: 'ECONNREFUSED' }
    : { answer: { count, pod: 'p', startedAt: 0, after: '' } }),
})

describe('the account of a counter', () => {
  it('has the answered additions, the failed calls and the longest time without an answer', () => {
    const calls = [call(0, 1), call(50, 2), call(100), call(150), call(400, 3), call(420, 4)]
    expect(accountOf(calls, 4)).toEqual({ answered: 4, failed: 2, gapMs: 350, lost: 0 })
  })

  it('may have counted a call that was never answered', () => {
    expect(accountOf([call(0, 1), call(50), call(100, 3)], 3).lost).toBe(0)
  })

  it('finds additions that the next state did not have', () => {
    // The pod that took over had the state of 2: it gave 3 once more.
    expect(accountOf([call(0, 1), call(1, 2), call(2, 3), call(3, 3), call(4, 4)], 4).lost).toBe(1)
    expect(accountOf([call(0, 1), call(1, 2), call(2, 3)], 2).lost).toBe(1)
  })
})
