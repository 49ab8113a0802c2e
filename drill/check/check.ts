/** From a history to what it violates. Pure: the same history has the same violations. */
import type { History } from '../history.ts'
import { holders, oldEpochs, strangers, unprovoked } from './epochs.ts'
import { type Facts, factsOf } from './facts.ts'
import { lines } from './lines.ts'
import { hung, noTraffic, outageOf, restarted, unprotected, unserved } from './service.ts'
import type { Violation } from './violation.ts'

export interface Verdict {
  readonly violations: readonly Violation[]
  /** Longest time without an answer of each slot that a fault may have hit, ms. */
  readonly outages: readonly number[]
}

const ofSlots = [holders, unprovoked, strangers, oldEpochs, lines, unserved, hung, noTraffic] as const

export function check(history: History): Verdict {
  const facts = factsOf(history)
  return {
    violations: [
      ...facts.slots.flatMap(slot => ofSlots.flatMap(rule => rule(facts, slot))),
      ...restarted(facts, history),
      ...unprotected(history),
    ],
    outages: outagesOf(facts),
  }
}

const outagesOf = (facts: Facts): number[] =>
  facts.slots.flatMap(slot => (slot.faults.length > 0 ? (outageOf(facts, slot)?.ms ?? []) : []))
