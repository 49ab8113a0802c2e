import {
  type Handover,
  handoverSuccessor,
  isOverdue,
  mayStandStill,
  overdueAt,
} from '../../slot/decide/handover.ts'
import type { MemoryView, SlotMemory } from '../../slot/decide/memory-view.ts'
import { fitsDowntime } from '../../slot/decide/move.ts'
import type { PodView, Snapshot } from '../snapshot.ts'
import { handoverOverAt } from './losses.ts'
import { isWell, mayMoveNow, movesOf, targetsFor } from './moves.ts'
import { awayFrom, couldTake, inTurn, relaysOf } from './relay.ts'
import { isGivenUp, updateOf } from './update.ts'

/**
 * The turn of one slot: its primary is to be replaced, in a roll or because a client asked for it. One slot at a time.
 */
export interface Turn extends Handover {
  readonly primary: PodView
  /** In a roll a pod of the new template. */
  readonly successor: PodView | undefined
  /** A client or a Migration asks for it; otherwise the turn belongs to a roll. */
  readonly requested: boolean
}

/**
 * Returns the slot whose primary is to be replaced next. The result follows from the snapshot alone, so that a new
 * leader continues where the last one stopped.
 */
export function turnOf(s: Snapshot): Turn | undefined {
  const { set, memory } = s
  if (memory === undefined || set.paused) return undefined
  // Drops handovers that have timed out: the primary has to answer again before the next attempt.
  // A set that is to be suspended only ends the moves that have begun.
  const others = arePrimariesWell(s) && !set.suspended ? [...requested(s, memory), ...rolled(s, memory)] : []
  const turns = [...moved(s), ...others].filter(
    ({ primary, slot }) =>
      s.now < (handoverOverAt(s, primary) ?? Number.POSITIVE_INFINITY) && !isOverdue(slot, s),
  )
  // A handover in progress comes first, then requested ones, then the lowest slot.
  const rank = ({ slot: { lease }, successor, requested }: Turn) =>
    (lease.handover === undefined ? 4 : lease.handover === successor?.uid ? 0 : 2) + (requested ? 0 : 1)
  return turns.sort((a, b) => rank(a) - rank(b) || a.slot.lease.slot - b.slot.lease.slot)[0]
}

/** Returns the ms until the next handover is over that this process has requested; undefined: there is none. */
export function untilOverdue({ memory, monotonicNow }: Snapshot): number | undefined {
  const left = [...(memory?.slots.values() ?? [])].map(slot => overdueAt(slot) - monotonicNow)
  const next = left.filter(ms => ms > 0 && ms < Number.POSITIVE_INFINITY)
  return next.length === 0 ? undefined : Math.min(...next)
}

/** Slots for which a client requested a handover, and which another pod can take with their memory. */
const requested = (s: Snapshot, memory: MemoryView): Turn[] =>
  s.pods.flatMap((primary): Turn[] => {
    const slot = memory.slots.get(primary.slot ?? -1)
    if (slot === undefined || primary.kind !== 'primary' || primary.stage?.handoverRequested !== true)
      return []
    if (memory.refused !== undefined || !mayStandStill(slot)) return []
    // Of any template: `optionsOf` returns only pods that the memory fits.
    const successor = handoverSuccessor(s.pods, slot)
    return successor === undefined ? [] : [{ primary, slot, successor, requested: true }]
  })

/** Slots that Migrations move, once the pod that takes them has their memory. */
function moved(s: Snapshot): Turn[] {
  const targets = targetsFor(s)
  return [...movesOf(s).values()].flatMap(({ slot, primary, move }): Turn[] => {
    if (!mayStandStill(slot) || !mayMoveNow(s, primary)) return []
    const target = targets.get(slot.lease.slot)
    const successor = handoverSuccessor(target === undefined ? [] : [target], slot)
    const copy = slot.copies.find(({ node }) => node === successor?.node)
    // Once the primary is stopped, the time that this takes does not matter any more.
    const mayBegin = slot.lease.handover === successor?.uid || fitsDowntime(move, copy?.report)
    return successor === undefined || !mayBegin ? [] : [{ primary, slot, successor, requested: true }]
  })
}

/** Outdated slots, once every backup is of the new template and in its place. */
function rolled(s: Snapshot, memory: MemoryView): Turn[] {
  if (s.set.updateStrategy !== 'RollingUpdate') return []
  const { blocked, outdated } = updateOf(s)
  if (blocked || !areBackupsNew(s)) return []
  const updated = s.pods.filter(pod => pod.templateHash === s.templateHash)
  return outdated.flatMap((primary): Turn[] => {
    const slot = memory.slots.get(primary.slot ?? -1)
    if (slot === undefined) return []
    if (isGivenUp(s, slot)) return [{ primary, slot, successor: undefined, requested: false }]
    if (memory.refused !== undefined || !mayStandStill(slot)) return []
    const successor = handoverSuccessor(updated, slot)
    return successor === undefined ? [] : [{ primary, slot, successor, requested: false }]
  })
}

/** Returns the slot for whose turn a pod is to be made now; one slot at a time. */
export function withoutSuccessor(s: Snapshot): SlotMemory | undefined {
  if (s.memory?.refused !== undefined || !arePrimariesWell(s) || relaysOf(s).length > 0) return undefined
  return [...inTurn(s).values()]
    .map(({ slot }) => slot)
    .filter(slot => mayStandStill(slot) && awayFrom(slot).length > 0 && couldTake(s, slot).length === 0)
    .sort((a, b) => a.lease.slot - b.lease.slot)[0]
}

/** True if every slot has its primary, which holds the Lease and is well. */
export function arePrimariesWell(s: Snapshot): boolean {
  const primaries = s.pods.filter(pod => pod.kind === 'primary')
  return primaries.length === s.set.replicas && primaries.every(pod => isWell(s, pod))
}

/** True if every backup exists, is ready for its job and is of the new template, and no pod is on its way out. */
function areBackupsNew(s: Snapshot): boolean {
  const { set } = s
  if ((s.retired?.length ?? 0) > 0 || s.finished.length > 0) return false
  const relays = relaysOf(s)
  const of = (kind: PodView['kind']) => s.pods.filter(pod => pod.kind === kind && !relays.includes(pod))
  const isNew = (pod: PodView) => pod.templateHash === s.templateHash
  const [hot, cold] = [of('hotbackup'), of('coldbackup')]
  return (
    hot.length === set.hotBackups &&
    hot.every(pod => isNew(pod) && pod.ready && !pod.waking) &&
    cold.length === set.coldBackups &&
    cold.every(pod => isNew(pod) && pod.gate === 'waiting' && !pod.waking)
  )
}
