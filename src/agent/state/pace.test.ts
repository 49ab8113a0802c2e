import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createPace, intervalsAhead, type PaceSettings, shareOfTime } from './pace.ts'

const settings: PaceSettings = { intervalMs: 1_000, maxFreezePercent: 2 }
const short = { frozenMs: 10, pipelineMs: 100 }

/** The gaps after these freezes, each taken when the pace allows it. */
function gapsOf(
  freezes: readonly { readonly frozenMs: number; readonly pipelineMs: number }[],
  by: PaceSettings = settings,
) {
  const pace = createPace()
  let startedAt = 5_000
  return freezes.map(freeze => {
    pace.saved({ startedAt, ...freeze }, by)
    const gap = pace.gap(by)
    startedAt += gap.ms
    return gap
  })
}

describe('pace of checkpoints', () => {
  it('is the interval while freezes are short', () => {
    expect(gapsOf([short, short, short])).toEqual([{ ms: 1_000 }, { ms: 1_000 }, { ms: 1_000 }])
  })

  it('a runtime that warms up: its first freeze does not set the pace', () => {
    const jvm = { intervalMs: 3_000, maxFreezePercent: 2 }
    const gaps = gapsOf([{ frozenMs: 274, pipelineMs: 900 }, ...Array(5).fill(short)], jvm)
    expect(gaps[0]).toEqual({ ms: 6_000, reason: 'FreezeBudget' })
    expect(gaps.at(-1)).toEqual({ ms: 3_000 })
  })

  it('one long freeze among short ones is paid off by gaps of twice the interval at most', () => {
    const gaps = gapsOf([short, short, { frozenMs: 200, pipelineMs: 100 }, ...Array(12).fill(short)])
    expect(Math.max(...gaps.map(({ ms }) => ms))).toBe(2_000)
    expect(gaps[2]?.reason).toBe('FreezeBudget')
    expect(gaps.at(-1)).toEqual({ ms: 1_000 })
  })

  it('freezes that are long each time take their share, and it is said why', () => {
    const gaps = gapsOf(Array(40).fill({ frozenMs: 100, pipelineMs: 300 }))
    expect(gaps.at(-1)).toEqual({ ms: 5_000, reason: 'FreezeBudget' })
  })

  it('a node that is busy each time saves half of the time, one slow checkpoint is waited for and no more', () => {
    const slow = { frozenMs: 10, pipelineMs: 4_000 }
    expect(gapsOf([short, slow, short])).toEqual([
      { ms: 1_000 },
      { ms: 4_000, reason: 'Busy' },
      { ms: 1_000 },
    ])
    expect(gapsOf([slow, slow]).at(-1)).toEqual({ ms: 8_000, reason: 'Busy' })
    expect(gapsOf([slow])).toEqual([{ ms: 4_000, reason: 'Busy' }])
  })

  it('what changes in the set counts at once', () => {
    const pace = createPace()
    pace.saved({ startedAt: 0, ...short }, settings)
    expect(pace.gap({ ...settings, intervalMs: 60_000 })).toEqual({ ms: 60_000 })
  })

  it('who may stand still for more of its time waits for less of what has been', () => {
    const pace = createPace()
    pace.saved({ startedAt: 0, frozenMs: 1_000, pipelineMs: 100 }, settings)
    expect(pace.dueAt(settings)).toBe(40_000)
    expect(pace.dueAt({ ...settings, maxFreezePercent: 50 })).toBe(2_000)
  })

  it('one that is asked for is taken at once, the next one when the one before is paid off', () => {
    const pace = createPace()
    const long = { frozenMs: 1_000, pipelineMs: 100 }
    expect(pace.onRequestAt(settings)).toBeLessThan(0)
    pace.saved({ startedAt: 0, ...long }, settings)
    expect(pace.onRequestAt(settings)).toBe(0)
    pace.saved({ startedAt: 10_000, ...long }, settings)
    // Both take up 100 s; 10 s have passed, and 10 intervals may be ahead.
    expect([pace.onRequestAt(settings), pace.dueAt(settings)]).toEqual([90_000, 90_000])
    pace.saved({ startedAt: 90_000, ...long }, settings)
    expect(pace.onRequestAt(settings)).toBe(90_000)
  })

  it('what was in vain is paid off before the next try, and counts for what comes after it', () => {
    const pace = createPace()
    pace.failed({ startedAt: 0, frozenMs: 10 }, settings)
    expect(pace.dueAt(settings)).toBe(500)
    pace.saved({ startedAt: 500, ...short }, settings)
    pace.failed({ startedAt: 1_500, frozenMs: 1_000 }, settings)
    // It takes up 50 s, of which 10 intervals may be ahead.
    expect([pace.dueAt(settings), pace.onRequestAt(settings)]).toEqual([41_500, 1_500])
    pace.saved({ startedAt: 41_500, ...short }, settings)
    expect(pace.gap(settings)).toEqual({ ms: 2_000, reason: 'FreezeBudget' })
  })

  it('any freezes: never more than their share and ten intervals, and one that is asked for, never a gap without a reason', () => {
    const freeze = fc.record({
      frozenMs: fc.oneof(fc.nat(50), fc.nat(20_000)),
      pipelineMs: fc.nat(3_000),
      lateMs: fc.nat(2_000),
      // A client requests it this long after the previous one began.
      askedMs: fc.option(fc.nat(20_000), { nil: undefined }),
      inVain: fc.boolean(),
    })
    const by = fc.record({
      intervalMs: fc.integer({ min: 200, max: 60_000 }),
      maxFreezePercent: fc.integer({ min: 1, max: 50 }),
    })
    fc.assert(
      fc.property(fc.array(freeze, { minLength: 1, maxLength: 60 }), by, (freezes, by) => {
        const pace = createPace()
        let now = 0
        let taken = 0
        let isAsked = false
        const loan = Math.max(...freezes.map(({ frozenMs }) => shareOfTime(frozenMs, by)))
        for (const { lateMs, askedMs, inVain, ...times } of freezes) {
          expect(taken).toBeLessThanOrEqual(
            now + intervalsAhead * by.intervalMs + (isAsked ? loan : 0) + 1e-6,
          )
          if (inVain) pace.failed({ startedAt: now, frozenMs: times.frozenMs }, by)
          else pace.saved({ startedAt: now, ...times }, by)
          taken += shareOfTime(times.frozenMs, by)
          const { ms, reason } = pace.gap(by)
          if (!inVain) {
            expect(ms).toBeGreaterThanOrEqual(Math.max(by.intervalMs, times.pipelineMs))
            expect(reason === undefined).toBe(ms === by.intervalMs)
            expect(pace.dueAt(by)).toBeCloseTo(now + ms, 5)
          }
          const due = Math.max(now, pace.dueAt(by))
          const asked = Math.max(now, pace.onRequestAt(by), now + (askedMs ?? Number.POSITIVE_INFINITY))
          isAsked = asked < due
          now = isAsked ? asked : due + lateMs
        }
      }),
    )
  })
})
