import { describe, expect, it } from 'vitest'
import { answersFromBackups, firstAnswerOf, longestGap, outageOf, outageWhileThere } from './outage.ts'
import type { Probe } from './probe.ts'

const good = (at: number, host = 'a', ms = 2): Probe => ({ at, ms, host, count: 1, error: undefined })
const bad = (at: number, ms = 2): Probe => ({
  at,
  ms,
  host: undefined,
  count: undefined,
  error: 'ECONNREFUSED',
})

describe('what a client sees', () => {
  it('is without an outage when every probe was answered', () => {
    expect(outageOf([good(0), good(10)], 0)).toMatchObject({ ms: 0, failed: 0 })
  })

  it('lasts from the first failed probe to the first good one after the last failure', () => {
    const probes = [good(0), bad(10, 500), good(20), bad(30), good(40), good(50)]
    expect(outageOf(probes.toReversed(), 0)).toMatchObject({ ms: 30, failed: 2 })
  })

  it('counts a probe that was under way when it began', () => {
    expect(outageOf([bad(90, 20), good(100)], 100)).toMatchObject({ ms: 10, failed: 1 })
    expect(outageOf([bad(90, 5), good(100)], 100)).toMatchObject({ ms: 0, failed: 0 })
  })

  it('is no figure without an answer after it, or without probes', () => {
    expect(() => outageOf([good(0), bad(10)], 0)).toThrow('no answer after')
    expect(() => outageOf([], 0)).toThrow('sent no request')
  })

  it('is as long as no request was answered, whether requests failed or waited', () => {
    const waited = [good(0), good(10, 'a', 400), good(20, 'a', 395), good(420)]
    expect(outageOf(waited, 5).ms).toBe(0)
    expect(longestGap(waited.toReversed(), 5)).toBe(405)
    expect(longestGap([good(0), bad(10, 500), bad(20), good(700), good(710)], 5)).toBe(697)
    expect(longestGap([good(0), good(900), good(910)], 905)).toBe(7)
    expect(() => longestGap([good(0), bad(10)], 5)).toThrow('got no answer')
  })

  it('ends where the pod does, if somebody has answered there', () => {
    expect(outageWhileThere([good(0), bad(10), good(20), bad(30)], 5)).toMatchObject({ ms: 10, failed: 1 })
    expect(outageWhileThere([good(0), bad(10)], 5)).toBeUndefined()
  })

  it('tells who answered first, and who should not have', () => {
    const probes = [good(0, 'old'), good(10, 'new'), good(20, 'cold'), bad(30)]
    expect(firstAnswerOf(probes, new Set(['new', 'other']))).toBe(12)
    expect(firstAnswerOf(probes, new Set(['nobody']))).toBeUndefined()
    const primaries = new Map([
      ['old', 0],
      ['new', 13],
    ])
    expect(answersFromBackups(probes, primaries).map(({ host }) => host)).toEqual(['new', 'cold'])
  })
})
