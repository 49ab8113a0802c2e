/** Moves of slots to other nodes, as Migrations ask for them. */
import { unfitNodes } from '../../slot/decide/assignments.ts'
import { mayStandStill } from '../../slot/decide/handover.ts'
import type { SlotMemory } from '../../slot/decide/memory-view.ts'
import { type Move, targetsOf } from '../../slot/decide/move.ts'
import type { PodView } from '../snapshot.ts'
import { isRetained } from './retention.ts'
import { type Facts, isGivenUp } from './update.ts'

export interface Moving {
  readonly slot: SlotMemory
  readonly primary: PodView
  readonly move: Move
}

/**
 * Returns the slots that are to move, by number, in the order of their Migrations; of two Migrations of one slot, the first counts. A move
 * ends with its primary: the move does not ask for anything of the successor.
 */
export function movesOf(facts: Facts): ReadonlyMap<number, Moving> {
  const { memory, moves = [], pods } = facts
  const moving = new Map<number, Moving>()
  if (memory === undefined || memory.refused !== undefined) return moving
  for (const move of moves) {
    const primary = pods.find(({ uid, kind }) => uid === move.source && kind === 'primary')
    const slot = memory.slots.get(primary?.slot ?? -1)
    if (primary === undefined || slot === undefined || slot.lease.holder.uid !== primary.uid) continue
    if (isRetained(slot) || isGivenUp(facts, slot) || moving.has(slot.lease.slot)) continue
    moving.set(slot.lease.slot, { slot, primary, move })
  }
  return moving
}

/** Returns the pod that takes each moving slot, by number, as far as there is one on a node where its memory can run. */
export function targetsFor(facts: Facts): ReadonlyMap<number, PodView> {
  const { pods, memory } = facts
  const moving = [...movesOf(facts).values()]
  if (memory === undefined || moving.length === 0) return new Map()
  const heirs = new Set([...memory.slots.values()].map(slot => slot.lease.heir?.uid))
  return targetsOf(
    { pods, heirs },
    moving.map(({ slot: { lease }, move }) => {
      const unfit = unfitNodes(memory, lease.node)
      return { lease, move: { nodes: new Set([...move.nodes].filter(name => !unfit.has(name))) } }
    }),
  )
}

/**
 * Returns the pod that is to take each moving slot, by number, as far as there is one whose containers run. It becomes the heir,
 * and so gets the memory. Not while the primary is stopped for another pod: that handover comes to its end first.
 */
export function runningTargetsFor(facts: Facts): ReadonlyMap<number, PodView> {
  const targets = targetsFor(facts)
  return new Map(
    [...targets].filter(([number, { uid, node, stage }]) => {
      const handover = facts.memory?.slots.get(number)?.lease.handover ?? uid
      return node !== undefined && stage?.containers !== undefined && handover === uid
    }),
  )
}

/** Returns the moves for which pods are to be made now, in their order. */
export function withoutTarget(facts: Facts): readonly Moving[] {
  const targets = targetsFor(facts)
  return [...movesOf(facts).values()].filter(
    moving =>
      mayStandStill(moving.slot) &&
      mayMoveNow(facts, moving.primary) &&
      !targets.has(moving.slot.lease.slot) &&
      facts.pods.every(pod => !isMadeFor(pod, moving)),
  )
}

/**
 * True if the pod was made for this move. If it failed, it is not replaced: the next one would fail, too, and the Migration tells
 * why. A pod elsewhere, or of an earlier Migration of the slot, has stayed as a hot backup.
 */
export const isMadeFor = ({ kind, node, stage }: PodView, { slot, move }: Moving): boolean =>
  kind === 'hotbackup' &&
  stage?.successorOf === slot.lease.slot &&
  stage.madeFor === move.uid &&
  (node === undefined || (node !== slot.lease.node && move.nodes.has(node)))

/** True if the primary holds its Lease and is well. */
export function isWell({ memory }: Pick<Facts, 'memory'>, pod: PodView): boolean {
  const lease = memory?.slots.get(pod.slot ?? -1)?.lease
  // A primary that is stopped for its successor fails its probes.
  return (pod.ready || lease?.handover !== undefined) && isSettled({ memory }, pod)
}

function isSettled({ memory }: Pick<Facts, 'memory'>, { slot, waking, node, uid, stage }: PodView): boolean {
  const lease = memory?.slots.get(slot ?? -1)?.lease
  // One that waits for a node has no memory, and needs none of the backups.
  const holds = lease === undefined ? node === undefined : lease.holder.uid === uid
  return holds && !waking && !stage?.died && !stage?.promoting
}

/**
 * True if no slot waits for a successor, and this primary is well. Others need not be Ready: one may never
 * be, and a drain would wait for ever.
 */
export function mayMoveNow(facts: Facts, primary: PodView): boolean {
  const primaries = facts.pods.filter(({ kind }) => kind === 'primary')
  return (
    primaries.length === facts.set.replicas &&
    isWell(facts, primary) &&
    primaries.every(pod => isSettled(facts, pod))
  )
}
