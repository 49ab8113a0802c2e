import { isExpectedToGo } from '../../slot/decide/ending.ts'
import { isFencedOff, isOutOfReach } from '../../slot/decide/fence/verdict.ts'
import { usedHeirOf } from '../../slot/decide/grant.ts'
import { isGone } from '../../slot/decide/knowledge.ts'
import type { MemoryView, SlotMemory } from '../../slot/decide/memory-view.ts'
import { optionsOf } from '../../slot/decide/successors.ts'
import type { PodView, Snapshot } from '../snapshot.ts'
import { isAbandoned } from './clones.ts'
import { partition } from './partition.ts'
import type { PrimarySets } from './primary-sets.ts'
import { isRetained } from './retention.ts'

/** Slots whose primary is gone. */
export interface Vacancies {
  /** Their primary is being deleted, and its app has not been stopped yet. They keep their place. */
  readonly waiting: readonly SlotMemory[]
  /** To be filled now. */
  readonly vacant: readonly SlotMemory[]
  /** Marked as having no place, although the set has one again. */
  readonly retained: readonly SlotMemory[]
  /** The set has become smaller: no pod will hold them. */
  readonly needless: readonly SlotMemory[]
  /** They wait for memory of a pod that the set does not name any more. They keep their place until their Leases are gone. */
  readonly abandoned: readonly SlotMemory[]
}

/**
 * Splits the slots whose primary is gone into as many as the set still wants, and the rest. Slots whose memory is
 * available come first, retained slots last.
 */
export function vacancies(
  s: Snapshot,
  memory: MemoryView,
  cast: PrimarySets,
  backups: readonly PodView[],
): Vacancies {
  const { slots } = memory
  const held = new Set(cast.primaries.map(pod => pod.slot))
  const rank = (slot: SlotMemory) =>
    Math.min(isGone(slot) ? 10 : 9, ...optionsOf(slot, backups).map(option => option.rank)) +
    (isGoing(s, slot) ? 0 : 0.5) +
    (isRetained(slot) ? (slot.lease.suspended ? 20 : 40) : 0)
  const [abandoned, unheld] = partition(
    [...slots.values()].filter(({ lease }) => !held.has(lease.slot)),
    slot => isAbandoned(s, memory, slot),
  )
  const [lost, left] = partition(
    unheld,
    // A suspended slot whose memory is gone starts from an empty state in its place, which an event tells.
    slot => isRetained(slot) && isGone(slot) && !slot.lease.suspended,
  )
  left.sort((a, b) => rank(a) - rank(b) || a.lease.slot - b.lease.slot)
  const [marked, open] = partition(left, isRetained)
  const calledOff = cast.primaries.filter(pod => isCalledOff(slots.get(pod.slot ?? -1), pod))
  const room = Math.max(0, s.set.replicas - cast.primaries.length + calledOff.length)
  const wanted = open.slice(0, room)
  const roomLeft = Math.max(0, s.set.replicas - cast.primaries.length - wanted.length)
  const [waiting, vacant] = partition(wanted, slot => isGoing(s, slot))
  // A suspended set keeps what the primary has saved: the slot has no place, and is not marked before the primary has stopped.
  const [staying, needless] = partition(open.slice(room), slot => s.set.suspended && isGoing(s, slot))
  return {
    ...{ waiting: [...waiting, ...staying], vacant, retained: marked.slice(0, roomLeft) },
    needless: [...needless, ...marked.slice(roomLeft), ...lost],
    abandoned,
  }
}

/** True for a pod that was called to a slot which has lost its place since: it takes no place of another slot. */
const isCalledOff = (slot: SlotMemory | undefined, { uid, stage }: PodView): boolean =>
  slot !== undefined && isRetained(slot) && slot.lease.holder.uid === uid && stage?.promoting === true

/**
 * The agent is about to stop the primary, and then a successor continues with its memory. If no memory is left, the
 * primary uses up its grace period and the slot does not wait for it. Nor does it wait for a primary that its voters have
 * shut off. But a primary that may run where no agent can stop it is waited for until they have.
 */
export const isGoing = (s: Snapshot, slot: SlotMemory): boolean =>
  !isRetained(slot) &&
  !isGone(slot) &&
  usedHeirOf(slot) === undefined &&
  !isFencedOff(s, slot) &&
  (isExpectedToGo(slot, s.monotonicNow) || isOutOfReach(s, slot))

/**
 * Returns the ms until the operator stops waiting for a primary that is being deleted; undefined if it waits for none.
 */
export function untilDeparture(s: Snapshot): number | undefined {
  const left = [...(s.memory?.slots.values() ?? [])].flatMap(({ holderGoesBy }) =>
    holderGoesBy === undefined || holderGoesBy <= s.monotonicNow ? [] : [holderGoesBy - s.monotonicNow],
  )
  return left.length === 0 ? undefined : Math.min(...left)
}
