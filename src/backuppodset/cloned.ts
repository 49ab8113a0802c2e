/** The condition Cloned: how far the slots are that begin with the memory of another pod. */
import { isCloning, isOfSource } from '../api/clone-of.ts'
import type { ParsedSet } from '../api/parse.ts'
import { conditionTypes, reasons } from '../api/reasons.ts'
import type { Condition } from '../kube/conditions.ts'
import type { SlotMemory } from '../slot/decide/memory-view.ts'
import { cloneSourceFor, isAbandoned, isLost, isStuck } from './decide/clones.ts'
import type { PassFacts } from './pass-facts.ts'

type Wanted = Pick<Condition, 'type' | 'status' | 'reason' | 'message'>

/** Only sets with `cloneFrom` have this condition. True: each slot has served once, and needs its source no more. */
export function clonedOf(
  set: ParsedSet,
  { memory, restoreHash, monotonicNow = 0 }: PassFacts,
): readonly Wanted[] {
  if (set.cloneFrom === undefined || memory === undefined) return []
  const type = conditionTypes.cloned
  // The memory of a suspended slot waits for its pod; a slot that a smaller `replicas` took away has no place.
  const slots = [...memory.slots.values()].filter(
    slot =>
      (slot.lease.retainedSince === undefined || slot.lease.suspended) && !isAbandoned({ set }, memory, slot),
  )
  const coming = slots.filter(({ lease }) => isOfSource(lease))
  const begun = slots.length - coming.length
  if (coming.length === 0 && begun >= set.replicas)
    return [
      { type, status: 'True', reason: reasons.cloned, message: `all slots have begun${aloneWord(slots)}` },
    ]
  const not = (reason: string, why: string) => [
    {
      type,
      status: 'False' as const,
      reason,
      message: `${begun} of ${set.replicas} slots have begun; ${why}`,
    },
  ]
  if (set.paused) return not(reasons.paused, 'no other slot begins while spec.paused is true')
  if (set.suspended) return not(reasons.suspended, 'the others begin when the set resumes')
  const first = coming.find(slot => !isLost(slot) && !isStuck({ monotonicNow }, memory, slot))
  if (first !== undefined) return not(reasons.cloning, wordOf(first))
  const source = cloneSourceFor({ restoreHash }, memory)
  if (source !== undefined && 'reason' in source) return not(source.reason, source.message)
  return not(reasons.cloning, 'the operator chooses memory for the next one')
}

/** Without another node the end of one node costs such a slot its memory. */
function aloneWord(slots: readonly SlotMemory[]): string {
  const alone = slots.filter(({ lease, copies }) => copies.every(({ node }) => node === lease.node))
  return alone.length === 0
    ? ''
    : `; no other node has the memory of slot ${alone.map(({ lease }) => lease.slot).join(', ')}`
}

function wordOf({ lease, copies, source }: SlotMemory): string {
  const { slot, holder, cloneOf } = lease
  if (!isCloning(lease))
    return cloneOf?.served
      ? `slot ${slot}: ${holder.name} has begun, and no other node has its memory yet`
      : `slot ${slot}: ${holder.name} has been called to it, and is to serve`
  const report = source?.message === undefined ? '' : `, and reports: ${source.message}`
  return copies.length === 0
    ? `slot ${slot}: node ${cloneOf?.node} copies the memory of ${holder.name}${report}`
    : `slot ${slot}: node ${copies[0]?.node} has the memory of ${holder.name}, and a pod for it is on its way`
}

/** Returns why slots have not begun, if none has for at least this time; undefined: there is time left, or nothing to begin. */
export const overdueWord = (
  wanted: readonly Wanted[],
  { memory, monotonicNow = 0 }: PassFacts,
  afterMs: number,
): string | undefined =>
  memory?.cloningSince !== undefined && monotonicNow - memory.cloningSince >= afterMs
    ? wanted.find(({ status }) => status === 'False')?.message
    : undefined
