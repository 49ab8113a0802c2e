/** The successors of lost primaries, with the memory of their slots. */

import { isCloning, isOfSource, isUnserved } from '../../api/clone-of.ts'
import type { Role, SlotActionOf } from '../../slot/decide/actions.ts'
import { latecomerOf, msUntilEnded, msUntilGivenUp, msUntilLatecomerEnded } from '../../slot/decide/ending.ts'
import { usedHeirOf } from '../../slot/decide/grant.ts'
import { endOf, isGone } from '../../slot/decide/knowledge.ts'
import type { MemoryView, SlotMemory } from '../../slot/decide/memory-view.ts'
import type { LossReason, LostPrimary } from '../../slot/decide/snapshot.ts'
import { callable, nodesWith, promotion } from '../../slot/decide/successors.ts'
import type { Action } from '../plan.ts'
import type { PodView, Snapshot } from '../snapshot.ts'
import { msUntilReplaced } from './breaker.ts'
import { type Backups, candidatesFor } from './candidates.ts'
import type { Failure } from './deaths.ts'
import { lastResort } from './last-resort.ts'
import { partition } from './partition.ts'
import { roleIn } from './primary-sets.ts'
import { awayFrom } from './relay.ts'
import { revisionFor } from './revisions.ts'
import type { Tools } from './tools.ts'
import type { Vacancies } from './vacancies.ts'

export interface Takeovers {
  readonly actions: readonly Action[]
  /** Primaries that do not have their slot any more. */
  readonly replaced: ReadonlySet<PodView>
  /** Roles in a new incarnation, each for a new pod. */
  readonly newLives: readonly Role[]
  /** Slots whose memory is lost while only their source has it: they begin with that again. */
  readonly uncloned: readonly SlotMemory[]
  /** Slots that wait for a pod made for them, or for their memory. */
  readonly expecting: ReadonlySet<number>
  /** Slots in which a pod is to be terminated before another one is called. */
  readonly ending: ReadonlySet<number>
  /** Slots that get no successor before their grants are over. */
  readonly ungranted: ReadonlySet<number>
  /** Vacant slots that have no successor yet: a called pod may still come, or has to end first. */
  readonly late: readonly number[]
}

/**
 * Calls a successor to each slot that needs one: those of primaries that failed, and those whose primary is gone. A slot
 * that no backup can take gets a pod made for it, or a new incarnation, or waits.
 */
export function takeovers(
  s: Snapshot,
  memory: MemoryView,
  tools: Tools,
  backups: Backups,
  { failing, vacancies }: { readonly failing: readonly Failure[]; readonly vacancies: Vacancies },
): Takeovers {
  const [coming, open] = partition(vacancies.vacant, slot => msUntilGivenUp(s, slot) > 0)
  const { all, successorOf, waiting, toRelease } = candidatesFor(s, memory, backups, failing, open)
  const { call, callAfterLatecomer, makeFor, ...filling } = fillingOf(s, memory, tools, backups.hot)
  const replaced = new Set<PodView>()
  const ungranted = new Set(toRelease)
  const release = (slot: SlotMemory | undefined) => {
    // A used grant is released, too, if its heir is gone since: then the agent of the heir says that it does not run.
    if (slot?.grants?.outstanding !== undefined) ungranted.add(slot.lease.slot)
  }
  for (const { pod, reason, mayServe } of failing) {
    const slot = memory.slots.get(pod.slot ?? -1)
    const successor = successorOf(pod.slot)
    if (pod.slot === undefined) continue
    if (!mayServe) replaced.add(pod)
    // A heir that has the slot already is only recorded.
    const isRecorded = usedHeirOf(slot) !== undefined
    if (!isRecorded && msUntilReplaced(s, pod.slot, reason) > 0) continue
    const role = roleIn(s, pod.slot, lostPrimary(s, pod, pod.slot, reason))
    if (successor === undefined) release(slot)
    if (waiting.has(pod.slot)) filling.expecting.add(pod.slot)
    else if (slot !== undefined && successor !== undefined) {
      if (call(slot, promotion(slot, successor, role, s), mayServe ? msUntilEnded(s, slot, pod) : 0))
        replaced.add(pod)
    } else if (!mayServe) {
      // The agent that declared the pod dead has shut it off, and an understudy runs only what is restored in it: it
      // does not come back. Neither does a primary whose voters answer it no more.
      if (slot === undefined) filling.newLives.push({ ...role, startsEmpty: 'Gone' })
      else makeFor(slot, role)
    }
  }
  for (const slot of open) {
    const successor = successorOf(slot.lease.slot)
    const role = roleIn(s, slot.lease.slot, lossIn(s, slot))
    if (successor !== undefined) callAfterLatecomer(slot, promotion(slot, successor, role, s))
    else if (waiting.has(slot.lease.slot)) filling.expecting.add(slot.lease.slot)
    else {
      release(slot)
      makeFor(slot, role)
    }
  }
  // A pod may be made while the previous primary is being stopped, or while a called pod may still come. A
  // suspended set makes none.
  for (const slot of [...(s.set.suspended ? [] : vacancies.waiting), ...coming]) {
    const next = lastResort(s, slot, backups.hot)
    if (next === 'awaited' || (next === 'make' && callable(s, slot, all).length === 0))
      makeFor(slot, roleIn(s, slot.lease.slot, undefined))
  }
  const late = [...coming, ...open.filter(({ lease }) => filling.ending.has(lease.slot))]
  return { ...filling, replaced, ungranted, late: late.map(({ lease }) => lease.slot) }
}

/** Collects the actions that fill slots, and the slots that are not filled yet. */
function fillingOf(s: Snapshot, memory: MemoryView, tools: Tools, hot: readonly PodView[]) {
  const actions: Action[] = []
  const newLives: Role[] = []
  const uncloned: SlotMemory[] = []
  const expecting = new Set<number>()
  const ending = new Set<number>()
  /**
   * Calls the successor, or marks the slot while another pod may still run with this memory.
   * @param leftMs until that one has ended. @returns true if the successor is called now.
   */
  const call = (slot: SlotMemory, successor: Action, leftMs: number): boolean => {
    const isEnded = leftMs <= 0
    if (isEnded) actions.push(successor)
    else ending.add(slot.lease.slot)
    return isEnded
  }
  return {
    ...{ actions, newLives, uncloned, expecting, ending, call },
    callAfterLatecomer: (slot: SlotMemory, successor: SlotActionOf<'promote'>) => {
      const latecomer = latecomerOf(s, slot)
      if (latecomer === undefined) return call(slot, successor, 0)
      const checked = slot.isNodeLost ? successor : { ...successor, unresumed: latecomer }
      return call(slot, checked, msUntilLatecomerEnded(s, slot, latecomer))
    },
    makeFor: (slot: SlotMemory, role: Role) => {
      const next = lastResort(s, slot, hot)
      if (next === 'anew' && s.set.cloneFrom !== undefined && isOfSource(slot.lease)) uncloned.push(slot)
      else if (next === 'anew')
        newLives.push({ ...role, startsEmpty: isGone(slot) ? 'Gone' : 'GivenUp', ...endOf(memory, slot) })
      else expecting.add(slot.lease.slot)
      if (next === 'make') actions.push(madeFor(s, tools, slot))
    },
  }
}

/** Returns the creation of a hot backup that can take this slot. */
function madeFor(s: Snapshot, tools: Tools, slot: SlotMemory): Action {
  const { revision: _, ...made } = tools.creating('hotbackup', s.set.strategy.unallocatedToReplicas)
  const { slot: number, restoreHash = '' } = slot.lease
  const revision = restoreHash === s.restoreHash ? undefined : revisionFor(s, restoreHash)
  return {
    ...made,
    ...(revision && { revision }),
    // A pod that was deleted had to leave its node.
    successorOf:
      s.set.isNumbered && !isCloning(slot.lease)
        ? {
            slot: number,
            near: awayFrom(slot),
            avoid: slot.lease.node === undefined ? [] : [slot.lease.node],
          }
        : { slot: number, near: nodesWith(slot) },
  }
}

const lostPrimary = (s: Snapshot, pod: PodView, slot: number, reason: LossReason): LostPrimary => {
  const known = s.lost.get(slot)
  if (known?.name === pod.name) return known
  const statedAt = reason === 'NodeLost' ? s.memory?.slots.get(slot)?.votes?.statedAt : undefined
  const lost = { name: pod.name, slot, epoch: pod.epoch, reason, seenAt: statedAt ?? s.monotonicNow }
  return pod.lastEnd === undefined ? lost : { ...lost, why: pod.lastEnd }
}

/**
 * Undefined: nothing was lost, since the slot begins with the memory of another pod. The end of the primary of a suspended slot was
 * intended: its return is no failover.
 */
const lossIn = (s: Snapshot, slot: SlotMemory): LostPrimary | undefined => {
  const { suspended, slot: number } = slot.lease
  if (isUnserved(slot.lease)) return s.lost.get(number)
  return suspended
    ? { ...lostHolder(s, slot), reason: 'Replaced' }
    : (s.lost.get(number) ?? lostHolder(s, slot))
}

/** The primary disappeared while no operator watched. */
const lostHolder = (s: Snapshot, { lease }: SlotMemory): LostPrimary => ({
  name: lease.holder.name,
  slot: lease.slot,
  epoch: lease.epoch,
  reason: 'PodDeleted',
  seenAt: s.monotonicNow,
})
