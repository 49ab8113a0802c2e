import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { check } from '../check/check.ts'
import { rules } from '../check/violation.ts'
import type { Entry, Fault } from '../history.ts'
import { forgeries } from './forged.ts'
import { harmless } from './forged-fences.ts'
import { harmlessMoves } from './forged-moves.ts'
import { honest, plain } from './honest.ts'

/** Faults that together keep two of three voters from some primary. */
const pairs: readonly (readonly Fault['silences'][])[] = [
  ['Api', ['n1']],
  ['Api', ['n1', 'n2']],
  [['n1'], ['n2']],
  // The primary on n1 hears neither.
  [['n1', 'n2'], ['n3']],
  [
    ['n1', 'n2'],
    ['n1', 'n3'],
  ],
]
/** Faults that keep one voter from each primary, at most. */
const alone: readonly (readonly Fault['silences'][])[] = [
  ['Api', 'Api'],
  [['n1'], ['n1']],
  // The primary on n1 is cut off itself, and the one on n2 has lost n1 once.
  [['n1', 'n2'], ['n1']],
]

describe('the checker of drills', () => {
  it.each(forgeries)('catches: $title', ({ rule, history }) => {
    const found = check(history()).violations.map(violation => violation.rule)
    expect(found).toContain(rule)
  })

  it('has a forged history for every rule', () => {
    expect(new Set(forgeries.map(({ rule }) => rule))).toEqual(new Set(Object.keys(rules)))
  })

  it('finds nothing in the history from which the forged ones are made', () => {
    expect(check(honest(plain)).violations).toEqual([])
  })

  it.each([...harmless, ...harmlessMoves])('allows: $title', ({ history }) => {
    expect(check(history()).violations).toEqual([])
  })

  it('finds nothing in honest histories', () => {
    fc.assert(
      fc.property(
        fc.record({
          seed: fc.nat(),
          slots: fc.integer({ min: 1, max: 3 }),
          takeovers: fc.integer({ min: 0, max: 4 }),
          intervalMs: fc.integer({ min: 100, max: 3_000 }),
          pipelineMs: fc.integer({ min: 1, max: 1_500 }),
          outageMs: fc.integer({ min: 50, max: 4_000 }),
        }),
        shape => {
          expect(check(honest(shape)).violations).toEqual([])
        },
      ),
      { numRuns: 150 },
    )
  })

  it('allows an empty app after a reboot, but only at its own address', () => {
    const found = (client: 'direct' | 'fresh') => {
      const history = forgeries.find(({ rule }) => rule === 'EmptyAnswer')?.history() ?? []
      const booted = history.map(entry => {
        if (entry.type === 'fault') return { ...entry, mayAnswerEmpty: true }
        return entry.type === 'call' && entry.word === 'forged' ? { ...entry, client } : entry
      })
      return check(booted).violations.map(({ rule }) => rule)
    }
    expect(found('direct')).toEqual([])
    expect(found('fresh')).toContain('EmptyAnswer')
  })

  it('explains a takeover by two faults that together silence two of three voters, and not by one of them', () => {
    const history = forgeries.find(({ rule }) => rule === 'Unprovoked')?.history() ?? []
    const found = (...voters: readonly Fault['silences'][]) => {
      const silenced = history.flatMap((entry): Entry[] =>
        entry.type === 'fault' ? voters.map(silences => ({ ...entry, silences })) : [entry],
      )
      return check(silenced).violations.map(({ rule }) => rule)
    }
    for (const two of pairs) expect(found(...two)).not.toContain('Unprovoked')
    for (const one of alone) expect(found(...one)).toContain('Unprovoked')
  })

  it('allows an outage of a slot that no fault names if two faults together silence two of three voters', () => {
    const history = forgeries.find(({ rule }) => rule === 'Unserved')?.history() ?? []
    const found = (...voters: readonly Fault['silences'][]) => {
      const elsewhere = history.flatMap((entry): Entry[] =>
        entry.type === 'fault'
          ? voters.map(silences => ({ ...entry, silences, slots: [], outageMs: 10_000 }))
          : [entry],
      )
      return check(elsewhere).violations.map(({ rule }) => rule)
    }
    for (const two of pairs) expect(found(...two)).not.toContain('Unserved')
    for (const one of alone) expect(found(...one)).toContain('Unserved')
  })

  it('counts the age of a copy from the first fault that keeps newer memory from the heir of the slot', () => {
    const history = forgeries.find(({ rule }) => rule === 'LostBeyondAge')?.history() ?? []
    const found = (slot: number) => {
      const full = history.flatMap((entry): Entry[] =>
        entry.type === 'fault'
          ? [{ ...entry, at: entry.at - 4_000, slots: [], mayPromote: false, unsaved: [slot] }, entry]
          : [entry],
      )
      return check(full).violations.map(({ rule }) => rule)
    }
    expect(found(0)).not.toContain('LostBeyondAge')
    expect(found(1)).toContain('LostBeyondAge')
  })

  it('measures the outage of slots that a fault has hit', () => {
    const { outages } = check(honest({ ...plain, slots: 1, takeovers: 1, outageMs: 2_000 }))
    expect(outages).toHaveLength(1)
    expect(outages[0]).toBeGreaterThan(1_900)
    expect(outages[0]).toBeLessThan(2_200)
  })
})
