/** The Leases judge what Migrations say of their ends. */
import type { Epoch, Move } from '../history.ts'
import type { Facts, SlotFacts } from './facts.ts'
import { seconds, type Violation } from './violation.ts'

/** The deletion of a Migration has to reach the operator before the Lease is written. */
const noticedMs = 1_000
/** Watch, pass and write can each wait for a processor. */
const steps = 3

/** The slot was handed over, and the Migration has failed all the same. */
const afterTheSwitch: ReadonlySet<string | undefined> = new Set(['NotServing', 'MovedElsewhere'])

export function verdicts(facts: Facts, of: SlotFacts): Violation[] {
  const { begin, lateness } = facts
  return of.moves.flatMap((move): Violation[] => {
    const taken = of.epochs.find(({ handedOverBy }) => handedOverBy === move.source)
    // Its successor was lost as well, before it served.
    const isLostSince = of.epochs.some(
      ({ epoch, at, handedOverBy }) =>
        taken !== undefined && epoch > taken.epoch && handedOverBy === undefined && at <= move.at,
    )
    const isAlone = of.moves.every(other => other === move || other.source !== move.source)
    const inTime = move.at + noticedMs + steps * lateness(move.at - noticedMs, move.at + noticedMs)
    const says = saysOf(move, taken, { isAlone, inTime, isLostSince })
    if (says === undefined) return []
    const rule = move.ended === 'Unfinished' ? 'MoveUnfinished' : 'FalseVerdict'
    const what = `the Migration of ${move.source} (${move.phase ?? 'no phase'}, ${move.reason ?? 'no reason'})`
    return [{ rule, slot: of.slot, says: `${what} ${says}, at ${seconds(move.at - begin)}` }]
  })
}

function saysOf(
  { at, ended, target, reason }: Move,
  taken: Epoch | undefined,
  {
    isAlone,
    inTime,
    isLostSince,
  }: { readonly isAlone: boolean; readonly inTime: number; readonly isLostSince: boolean },
): string | undefined {
  // A second Migration of the pod has no target of its own, and has what it asked for.
  const isMoved = taken !== undefined && (target === undefined || taken.uid === target)
  switch (ended) {
    case 'Unfinished':
      return 'did not end'
    case 'Succeeded':
      return isMoved ? undefined : `has succeeded, and ${taken?.pod ?? 'no pod'} was given the slot`
    case 'Failed':
      return target !== undefined && isMoved && taken.at <= at && !isLostSince && !afterTheSwitch.has(reason)
        ? 'has failed, and its pod was given the slot'
        : undefined
    case 'CalledOff':
      // A roll may hand the slot over later, to another pod.
      return isAlone && target !== undefined && taken?.uid === target && taken.at > inTime
        ? `was called off, and later ${taken.pod} was given the slot`
        : undefined
  }
}
