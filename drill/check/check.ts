/** From a history to what it violates. Pure: the same history has the same violations. */
import type { History, Move } from '../history.ts'
import { holders, oldEpochs, strangers, unprovoked } from './epochs.ts'
import { type Facts, factsOf } from './facts.ts'
import { abandoned, fencedTooLong } from './fences.ts'
import { lines } from './lines.ts'
import { verdicts } from './moves.ts'
import { hung, noTraffic, outageOf, restarted, unprotected, unserved } from './service.ts'
import type { Violation } from './violation.ts'

export interface Verdict {
  readonly violations: readonly Violation[]
  /** Longest time without an answer of each slot that a fault may have hit, ms. */
  readonly outages: readonly number[]
  readonly figures: readonly Figure[]
  readonly moves: readonly MoveRow[]
}

/** How a Migration ended; the phase is that in which it was called off. */
export type MoveRow = Pick<Move, 'ended' | 'phase' | 'reason'>

/** A time that is reported and not judged. */
export interface Figure {
  readonly name: 'pause' | 'resume to freeze' | 'resume to stop' | 'fenced'
  /** undefined: it did not happen within the time in which it was looked for. */
  readonly ms: number | undefined
}

const ofSlots = [
  ...[holders, unprovoked, strangers, oldEpochs, lines],
  ...[unserved, hung, noTraffic, fencedTooLong, abandoned, verdicts],
] as const

export function check(history: History): Verdict {
  const facts = factsOf(history)
  return {
    violations: [
      ...facts.slots.flatMap(slot => ofSlots.flatMap(rule => rule(facts, slot))),
      ...restarted(facts, history),
      ...unprotected(history),
    ],
    outages: outagesOf(facts),
    figures: figuresOf(facts),
    moves: facts.slots.flatMap(({ moves }) =>
      moves.map(({ ended, phase, reason }) => ({ ended, phase, reason })),
    ),
  }
}

/** The sentinel's clock has whole milliseconds. */
const roundingMs = 5

const figuresOf = ({ pauses, slots }: Facts): Figure[] => [
  ...slots.flatMap(({ resumes, fenced }) =>
    resumes.map(({ uid, at }) => {
      const first = fenced.find(freeze => freeze.uid === uid && freeze.at > at - roundingMs)
      return { name: 'resume to freeze', ms: first && Math.max(0, first.at - at) } as const
    }),
  ),
  ...pauses.map(({ ms }) => ({ name: 'pause', ms }) as const),
  ...slots.flatMap(slot =>
    slot.resumes.map(({ stoppedMs }) => ({ name: 'resume to stop', ms: stoppedMs }) as const),
  ),
  ...slots.flatMap(slot => slot.fenced.map(({ ms }) => ({ name: 'fenced', ms }) as const)),
]

const outagesOf = (facts: Facts): number[] =>
  facts.slots.flatMap(slot => (slot.faults.length > 0 ? (outageOf(facts, slot)?.ms ?? []) : []))
