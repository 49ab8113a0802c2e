/**
 * Two pods must not run with one memory: the agent terminates a pod that may still run before another pod is called to
 * its slot.
 */
import { answersMs, outOfReachMs } from './deadlines.ts'
import type { SlotMemory } from './memory-view.ts'
import type { Candidate, SlotSnapshot } from './snapshot.ts'

/** How long to wait for the node of a pod that is to be terminated, ms; a node that needs longer may be cut off. */
const endingMs = 10_000

/** How often to look whether the node of a pod that may run is lost, ms: silence causes no watch event. */
const lookAgainMs = 2_000

/** The longest wait for a pod that is called, ms. */
const mostPatienceMs = 600_000

/** Whether the operator still waits for the report that a primary which is being deleted, or is gone, has stopped. */
export const isExpectedToGo = (
  { holderGoesBy, isNodeLost }: Pick<SlotMemory, 'holderGoesBy' | 'isNodeLost'>,
  monotonicNow: number,
): boolean => holderGoesBy !== undefined && holderGoesBy > monotonicNow && isNodeLost !== true

/**
 * The pod's node has an agent, which could terminate the pod or report what became of it. An agent that starts, or whose
 * checks fail, terminates pods, too.
 */
function isAttended(s: SlotSnapshot, { node }: Candidate): boolean {
  const agent = s.memory?.nodes.get(node ?? '')
  return agent !== undefined && agent.silent !== true
}

const waitsMs = ({ lease: { fence } }: SlotMemory): number =>
  fence?.isArmed === true ? outOfReachMs : endingMs

/**
 * Returns the ms for which no other pod may be called yet, because this one may still run beside it. It has ended when
 * its agent reports that it has died. Without an agent that could do so there is no wait.
 */
export function msUntilEnded(s: SlotSnapshot, slot: SlotMemory, pod: Candidate): number {
  if (!isAttended(s, pod)) return 0
  const { endingSince = s.monotonicNow } = slot
  return endingSince + waitsMs(slot) - s.monotonicNow
}

/**
 * Returns the ms for which no other pod may be called yet, because the latecomer may run, or may be about to. First the
 * Lease tells it to end: from then on it does not resume, unless its agent has told so before. A pod whose agent has told
 * so may run until that reports its end, however long the agent is away.
 */
export function msUntilLatecomerEnded(s: SlotSnapshot, slot: SlotMemory, pod: Candidate): number {
  if (slot.isNodeLost) return 0
  if (slot.lease.ending !== pod.uid || pod.stage?.resuming) return Number.POSITIVE_INFINITY
  return msUntilEnded(s, slot, pod)
}

/**
 * Returns the pod that was called to a slot without primary and did not answer in time. It may run by now, and may
 * still answer.
 */
export const latecomerOf = (s: SlotSnapshot, { lease }: SlotMemory): Candidate | undefined =>
  s.pods.find(({ uid, stage }) => uid === lease.holder.uid && stage?.late === true)

/**
 * Returns the ms until the latecomer is terminated: it gets as long as the pods that were called before it. Otherwise
 * an app that needs longer than the first of them had would use up one pod after the other, and never come on stage.
 *
 * If its agent was away for all of this time, it may resume the pod at the moment at which the pod is given up. No other
 * pod could serve sooner, so it gets the time to answer. Once the Lease tells it to end, its agent ends it.
 */
export function msUntilGivenUp(s: SlotSnapshot, slot: SlotMemory): number {
  const pod = latecomerOf(s, slot)
  const { lease, calledSince, comingSince, resumingSince } = slot
  if (pod === undefined || !isAttended(s, pod) || calledSince === undefined || comingSince === undefined)
    return 0
  const callEnds = calledSince + Math.min(calledSince - comingSince, mostPatienceMs)
  const isSpared = resumingSince !== undefined && lease.ending !== pod.uid
  return (isSpared ? Math.max(callEnds, resumingSince + answersMs) : callEnds) - s.monotonicNow
}

/**
 * Returns the ms until the wait for the next pod that is to be terminated, or may still answer, is over; undefined if
 * there is none.
 */
export function untilEnded(s: SlotSnapshot): number | undefined {
  const left = [...(s.memory?.slots.values() ?? [])]
    .flatMap(slot => [
      slot.endingSince === undefined ? 0 : slot.endingSince + waitsMs(slot) - s.monotonicNow,
      msUntilGivenUp(s, slot),
      latecomerOf(s, slot)?.stage?.resuming ? lookAgainMs : 0,
    ])
    .filter(ms => ms > 0)
  return left.length === 0 ? undefined : Math.min(...left)
}
