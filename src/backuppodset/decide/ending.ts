/** Two must not run with one memory: who may still run is ended before another pod is called to its slot. */
import type { SlotMemory } from '../memory/view.ts'
import type { PodView, Snapshot } from '../snapshot.ts'

/** So long the node of a pod is waited for that is to be ended; one that cannot do it in this time may be cut off, ms. */
const endingMs = 10_000

/** No pod that is called is waited for longer than this, ms. */
const mostPatienceMs = 600_000

/** An agent is there that could end it, or say what has become of it. */
const isAttended = (s: Snapshot, { node }: PodView): boolean =>
  node !== undefined && s.memory?.nodes.get(node)?.ready === true

/**
 * Ms for which another pod must not be called yet, because this one may still run beside it. It has ended when its agent
 * says so: then it has died. Where no agent is there to do that nobody is waited for.
 */
export function msUntilEnded(s: Snapshot, { endingSince }: SlotMemory, pod: PodView): number {
  if (!isAttended(s, pod)) return 0
  return endingSince === undefined ? endingMs : endingSince + endingMs - s.monotonicNow
}

/** Who was called to a slot without primary and did not answer in time. It may run by now, and it may answer yet. */
export const latecomerOf = (s: Snapshot, { lease }: SlotMemory): PodView | undefined =>
  s.pods.find(({ uid, stage }) => uid === lease.holder.uid && stage?.late === true)

/**
 * Ms for which the latecomer is waited for before it is ended: as long as others were before it. An app that needs longer
 * than the first of them had would else use up one pod after the other, and never come on stage.
 */
export function msUntilGivenUp(s: Snapshot, slot: SlotMemory): number {
  const pod = latecomerOf(s, slot)
  const { calledSince, comingSince } = slot
  if (pod === undefined || !isAttended(s, pod) || calledSince === undefined || comingSince === undefined)
    return 0
  return calledSince + Math.min(calledSince - comingSince, mostPatienceMs) - s.monotonicNow
}

/** Ms until the next pod that is to be ended, or may answer yet, is not waited for any longer; undefined where none is. */
export function untilEnded(s: Snapshot): number | undefined {
  const left = [...(s.memory?.slots.values() ?? [])]
    .flatMap(slot => [
      slot.endingSince === undefined ? 0 : slot.endingSince + endingMs - s.monotonicNow,
      msUntilGivenUp(s, slot),
    ])
    .filter(ms => ms > 0)
  return left.length === 0 ? undefined : Math.min(...left)
}
