import type { ParsedPull } from '../../api/memory.ts'
import { reasons } from '../../api/reasons.ts'
import { type SlotStatus, slotLimits } from '../../api/slot-status.ts'
import type { Candidate } from '../decide/snapshot.ts'
import type { Readiness } from '../report/readiness.ts'
import type { PullProblem, SavedState } from './states.ts'

/** The operator's facts about pulled state at the end of a pass. */
export interface PulledFacts {
  readonly pull: ParsedPull
  readonly stateOf: (slot: number) => SavedState | undefined
  readonly problemOf: (slot: number) => PullProblem | undefined
  /** Whether the durable state store answers; undefined if there is no durable store. */
  readonly storeHealthy: boolean | undefined
  /** Monotonic ms. */
  readonly monotonicNow: number
}

type SlotFacts = Required<Pick<SlotStatus, 'generation' | 'usableOn' | 'protection'>> &
  Pick<SlotStatus, 'usableOnCount' | 'savedAt' | 'intervalSeconds' | 'pipelineSeconds'>

/** As for memory, with the same terms: the age of the state, and the nodes with pods that could take it. */
export function pulledSlotFacts(
  { pull, stateOf }: PulledFacts,
  slot: number,
  primary: Candidate,
  pods: readonly Candidate[],
): SlotFacts {
  const saved = stateOf(slot)
  const state = saved?.holder.uid === primary.uid ? saved : undefined
  const able = pods.filter(pod => pod.pulled?.refused === undefined)
  const hot = able.filter(pod => pod.kind === 'hotbackup' && pod.ready)
  const cold = able.filter(pod => pod.kind === 'coldbackup' && pod.gate === 'waiting')
  const nodes = new Set([...hot, ...cold].flatMap(({ node }) => node ?? []))
  return {
    generation: state?.generation ?? 0,
    ...(state && {
      savedAt: new Date(state.takenAtWall).toISOString(),
      pipelineSeconds: state.seconds,
    }),
    intervalSeconds: pull.intervalMs / 1000,
    usableOn: state === undefined ? [] : [...nodes].sort().slice(0, slotLimits.usableOn),
    ...(state && nodes.size > slotLimits.usableOn && { usableOnCount: nodes.size }),
    protection: state === undefined ? 'None' : hot.length > 0 ? 'Warm' : cold.length > 0 ? 'Cold' : 'None',
  }
}

/** A state older than this many intervals counts as missing. */
const staleIntervals = 3

/** Returns whether every primary could be replaced with its state; if not, the first obstacle. */
export function pulledReadiness(facts: PulledFacts, slots: readonly SlotStatus[]): Readiness {
  const { pull, stateOf, problemOf, monotonicNow } = facts
  for (const { slot, pod } of slots) {
    const where = `slot ${slot} (${pod})`
    const state = stateOf(slot)
    const problem = problemOf(slot)
    const isStale =
      state !== undefined && monotonicNow - state.takenAt > staleIntervals * pull.intervalMs + pull.timeoutMs
    if (problem !== undefined && (state === undefined || isStale || problem.reason !== 'PullFailed'))
      return {
        status: 'False',
        reason: reasons[problemReasons[problem.reason]],
        message: `${where}: ${problem.why}`,
      }
    if (state === undefined || isStale)
      return {
        status: 'False',
        reason: reasons.notSaved,
        message:
          state === undefined
            ? `${where}: the operator has not pulled its state yet; it begins when the pod is ready`
            : `${where}: the operator last pulled its state at ${new Date(state.takenAtWall).toISOString()}; it pulls while the pod is ready`,
      }
  }
  const store =
    facts.storeHealthy === false
      ? '; the state store does not answer, so a restart of the operator would lose them'
      : ''
  return {
    status: 'True',
    reason: reasons.allProtected,
    message: `successors could get the states of ${slots.length} primaries${store}`,
  }
}

const problemReasons = {
  PullFailed: 'pullFailed',
  StateTooLarge: 'stateTooLarge',
  StateBudgetExceeded: 'stateBudgetExceeded',
} as const
