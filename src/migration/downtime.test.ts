import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { migrationPriorities, migrationTechniques } from '../api/migration.ts'
import { judgeDowntime, type Predicted, patience } from './downtime.ts'

const over = { generations: patience.generations + 1, ms: 0 }
const wish = { maxDowntimeMs: 300, technique: 'LiveIfPossible', priority: 'UserTriggered' } as const
const predicted = (given: Partial<Predicted>): Predicted => ({
  ...{ downtimeMs: 900, restartMs: 2_000, waited: over, deadlineMs: 40_000, ...given },
})

describe('MP-32 a pod', () => {
  test.each<[string, Partial<Predicted>, string]>([
    ['is stopped if that will be short', { downtimeMs: 300, waited: { generations: 1, ms: 0 } }, 'fits'],
    ['waits for a better moment', { waited: { generations: patience.generations, ms: 0 } }, 'waits'],
    ['waits while the target has no memory', { waited: undefined }, 'waits'],
    ['moves after some generations, if a restart is longer', {}, 'accepted'],
    ['moves after some time, too', { waited: { generations: 1, ms: patience.ms } }, 'accepted'],
    ['does not move if a restart is shorter', { restartMs: 800 }, 'worse'],
    ['does not move if nothing is known of a restart', { restartMs: undefined }, 'worse'],
    ['does not move if nothing is known of the move', { downtimeMs: undefined }, 'worse'],
  ])('%s', (_, given, judgement) => {
    expect(judgeDowntime(wish, predicted(given))).toBe(judgement)
  })

  test('that a drain moves ends its wait, whatever is predicted', () => {
    for (const given of [{}, { restartMs: 1 }, { restartMs: undefined }, { downtimeMs: undefined }])
      expect(judgeDowntime({ ...wish, priority: 'SystemCritical' }, predicted(given))).toBe('accepted')
  })

  test('is not stopped without success, by no drain either: a handover ends at its deadline', () => {
    for (const priority of migrationPriorities)
      expect(judgeDowntime({ ...wish, priority }, predicted({ deadlineMs: 899, restartMs: 5_000 }))).toBe(
        'worse',
      )
  })

  test('is never stopped for longer with the technique Live', () => {
    for (const priority of migrationPriorities)
      expect(judgeDowntime({ ...wish, technique: 'Live', priority }, predicted({}))).toBe('waits')
  })

  test('is stopped for longer than maxDowntime only after the patience, and by a drain or for less than a restart', () => {
    const ms = fc.option(fc.integer({ min: 0, max: 5_000 }), { nil: undefined })
    const waited = fc.option(
      fc.record({ generations: fc.integer({ min: 1, max: 6 }), ms: fc.integer({ min: 0, max: 60_000 }) }),
      { nil: undefined },
    )
    fc.assert(
      fc.property(
        fc.record({
          ...{ maxDowntimeMs: ms, technique: fc.constantFrom(...migrationTechniques) },
          priority: fc.constantFrom(...migrationPriorities),
        }),
        fc.record({ downtimeMs: ms, restartMs: ms, waited, deadlineMs: fc.integer({ min: 0, max: 5_000 }) }),
        (asked, facts) => {
          const judgement = judgeDowntime(asked, facts)
          const { downtimeMs = Number.POSITIVE_INFINITY, restartMs = -1 } = facts
          if (judgement === 'fits')
            expect(downtimeMs <= (asked.maxDowntimeMs ?? Number.POSITIVE_INFINITY)).toBe(true)
          if (judgement !== 'accepted') return
          expect((facts.downtimeMs ?? 0) <= facts.deadlineMs).toBe(true)
          expect(asked.technique).toBe('LiveIfPossible')
          expect(asked.priority === 'SystemCritical' || downtimeMs <= restartMs).toBe(true)
          expect(
            (facts.waited?.generations ?? 0) > patience.generations || (facts.waited?.ms ?? 0) >= patience.ms,
          ).toBe(true)
        },
      ),
    )
  })
})
