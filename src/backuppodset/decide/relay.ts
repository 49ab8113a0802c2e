/**
 * A roll hands a slot over to a hot backup on another node than its primary's, and a move to one on certain nodes. If the
 * set has none there, the operator makes a pod for the slot's turn, beyond the set's number.
 */

import { mayTake } from '../../slot/decide/errands.ts'
import type { SlotMemory } from '../../slot/decide/memory-view.ts'
import { nodesWith } from '../../slot/decide/successors.ts'
import type { PodView } from '../snapshot.ts'
import { isMadeFor, movesOf } from './moves.ts'
import { isRetained } from './retention.ts'
import { type Facts, isGivenUp, updateOf } from './update.ts'

/** Returns the slots that a roll wants to hand over with their memory, by number, with their primaries. */
export function inTurn(facts: Facts): ReadonlyMap<number, { slot: SlotMemory; primary: PodView }> {
  const { outdated, blocked } = updateOf(facts)
  if (facts.set.updateStrategy !== 'RollingUpdate' || blocked) return new Map()
  return new Map(
    outdated.flatMap(primary => {
      const slot = facts.memory?.slots.get(primary.slot ?? -1)
      const isIts = primary.kind === 'primary' && slot?.lease.holder.uid === primary.uid
      return isIts && !isGivenUp(facts, slot) ? [[slot.lease.slot, { slot, primary }] as const] : []
    }),
  )
}

/**
 * Returns the pods that were made for the turn of a slot and can take it. Such a pod is no hot backup of the set, and
 * takes no other slot.
 */
export function relaysOf(facts: Facts): readonly PodView[] {
  const slots = inTurn(facts)
  const moves = movesOf(facts)
  return facts.pods.filter(pod => {
    const { kind, templateHash, node, stage } = pod
    const number = stage?.successorOf ?? -1
    const moving = moves.get(number)
    // A move changes no template: its pod is of one that the memory fits.
    if (moving !== undefined) return isMadeFor(pod, moving)
    const slot = slots.get(number)?.slot
    return (
      kind === 'hotbackup' &&
      templateHash === facts.templateHash &&
      slot !== undefined &&
      (node === undefined || node !== slot.lease.node)
    )
  })
}

/** Hot backups of the new template that could take this slot once they are ready. */
export const couldTake = (facts: Facts, { lease }: SlotMemory): readonly PodView[] =>
  facts.pods.filter(
    pod =>
      pod.kind === 'hotbackup' &&
      pod.templateHash === facts.templateHash &&
      pod.stage?.understudy === true &&
      pod.stage.failed === undefined &&
      mayTake(pod, lease.slot) &&
      (pod.node === undefined || pod.node !== lease.node),
  )

/**
 * Marks pods whose errand is over: the slot that they were made for has its primary and no turn to come, or the set has
 * no place for it. Such a pod is a hot backup like any other: it may be the only one, and other slots need it.
 */
export function withErrands<T extends Facts>(facts: T): T {
  if (facts.pods.every(({ stage }) => stage?.successorOf === undefined)) return facts
  const turns = inTurn(facts)
  const moves = movesOf(facts)
  // Primaries are stopped for these pods, whichever slots the pods were made for.
  const awaited = new Set([...(facts.memory?.slots.values() ?? [])].map(({ lease }) => lease.handover))
  const pods = facts.pods.map((pod): PodView => {
    const { kind, uid, stage } = pod
    if (kind !== 'hotbackup' || stage?.successorOf === undefined) return pod
    const moving = moves.get(stage.successorOf)
    // A pod of an earlier Migration may be the heir of another slot by now.
    const isWanted = moving === undefined ? turns.has(stage.successorOf) : isMadeFor(pod, moving)
    const errandOver = awaited.has(uid) || (!isWanted && isOver(facts, stage.successorOf))
    return errandOver ? { ...pod, stage: { ...stage, errandOver } } : pod
  })
  return { ...facts, pods }
}

function isOver(facts: Facts, number: number): boolean {
  const slot = facts.memory?.slots.get(number)
  // Without a Lease the slot has no memory that a pod could continue with.
  return slot === undefined || isRetained(slot) || isServed(facts, slot)
}

const isServed = ({ pods }: Facts, { lease }: SlotMemory): boolean =>
  pods.some(
    ({ uid, kind, ready, waking, stage }) =>
      uid === lease.holder.uid && kind === 'primary' && ready && !waking && stage?.died !== true,
  )

/**
 * Returns the nodes other than the primary's that have the slot's memory, the newest first: a pod that is made there
 * has it at once.
 */
export const awayFrom = (slot: SlotMemory): readonly string[] =>
  nodesWith(slot).filter(node => node !== slot.lease.node)

/** Returns why no slot of a roll has its turn, with the cure; undefined if a slot has its turn, or is about to. */
export function whyRollWaits(facts: Facts): string | undefined {
  const slots = [...inTurn(facts).values()].sort((a, b) => a.slot.lease.slot - b.slot.lease.slot)
  const areBackupsOld = facts.pods.some(
    ({ kind, templateHash }) => kind !== 'primary' && templateHash !== facts.templateHash,
  )
  if (slots.length === 0 || areBackupsOld) return undefined
  const words = slots.map(({ slot, primary }) => wordOf(facts, slot, primary))
  const [first] = words
  if (first === undefined || words.includes(undefined)) return undefined
  return words.length === 1 ? first : `${first}; and ${words.length - 1} more`
}

function wordOf(facts: Facts, slot: SlotMemory, { name }: PodView): string | undefined {
  const { source, lease } = slot
  const waits = `slot ${lease.slot} (${name}) waits`
  if (facts.memory?.refused !== undefined)
    return `${waits}: its primary cannot be saved for the handover: ${facts.memory.refused.message}`
  if (source?.reason !== undefined)
    return `${waits}: its primary cannot be saved for the handover: ${source.message ?? source.reason}`
  if (source?.handoverPaused)
    return `${waits}: its primary was stopped and no successor was ready in time; a pause follows. See the events of the hot backups, or start it with "kubectl understudy promote"`
  const successors = couldTake(facts, slot)
  const [stuck] = successors
  if (successors.some(pod => pod.stuck === undefined)) return undefined
  if (stuck !== undefined)
    return `${waits}: its successor ${stuck.name} does not start: ${stuck.stuck}; make room on a node other than ${lease.node}`
  if (awayFrom(slot).length > 0) return undefined
  return `${waits}: only node ${lease.node} has its memory; add a node that can keep it, CheckpointReady names the obstacle`
}
