import type { MemoryView, SlotMemory } from '../memory/view.ts'
import type { PodView, Snapshot } from '../snapshot.ts'
import { handoverOverAt } from './failing.ts'
import { awayFrom, couldTake, inTurn, relaysOf } from './relay.ts'
import { optionsOf, slowRank } from './successors.ts'
import { isGivenUp, updateOf } from './update.ts'

/** Whose turn it is, in a roll or because somebody asked for it: one slot at a time. */
export interface Turn {
  readonly primary: PodView
  readonly slot: SlotMemory
  /** The understudy of the new template that takes it over with its memory; undefined: the slot begins anew. */
  readonly successor: PodView | undefined
  /** Its primary carries the wish; else it is a roll's. */
  readonly requested: boolean
}

/**
 * The slot whose primary is to be replaced next. It follows from the snapshot alone, so that a new leader goes on where
 * the last one was.
 */
export function turnOf(s: Snapshot): Turn | undefined {
  const { set, memory } = s
  if (memory === undefined || set.paused || !arePrimariesWell(s)) return undefined
  // One whose time is over is called off: its primary is to answer again before anything else is wanted of it.
  const turns = [...requested(s, memory), ...rolled(s, memory)].filter(
    ({ primary }) => s.now < (handoverOverAt(s, primary) ?? Number.POSITIVE_INFINITY),
  )
  // Who has begun goes on; then who was asked for; then the lowest number.
  const rank = ({ slot, requested }: Turn) =>
    (slot.lease.handover === undefined ? 2 : 0) + (requested ? 0 : 1)
  return turns.sort((a, b) => rank(a) - rank(b) || a.slot.lease.slot - b.slot.lease.slot)[0]
}

/** Slots that somebody wants to go to another pod, where one can go on with their memory. */
const requested = (s: Snapshot, memory: MemoryView): Turn[] =>
  s.pods.flatMap((primary): Turn[] => {
    const slot = memory.slots.get(primary.slot ?? -1)
    if (slot === undefined || primary.kind !== 'primary' || primary.stage?.handoverRequested !== true)
      return []
    if (memory.refused !== undefined || !mayStandStill(slot)) return []
    // Of whichever template: its memory fits the pod, or it is none of the options.
    const successor = successorOf(s, slot, () => true)
    return successor === undefined ? [] : [{ primary, slot, successor, requested: true }]
  })

/** Outdated slots, when everything below them is of the new template and in its place. */
function rolled(s: Snapshot, memory: MemoryView): Turn[] {
  if (s.set.updateStrategy !== 'RollingUpdate') return []
  const { blocked, outdated } = updateOf(s)
  if (blocked || !areBackupsNew(s)) return []
  return outdated.flatMap((primary): Turn[] => {
    const slot = memory.slots.get(primary.slot ?? -1)
    if (slot === undefined) return []
    if (isGivenUp(s, slot)) return [{ primary, slot, successor: undefined, requested: false }]
    if (memory.refused !== undefined || !mayStandStill(slot)) return []
    const successor = successorOf(s, slot, pod => pod.templateHash === s.templateHash)
    return successor === undefined ? [] : [{ primary, slot, successor, requested: false }]
  })
}

/** The slot for whose turn a pod is to be made now: one at a time. */
export function withoutSuccessor(s: Snapshot): SlotMemory | undefined {
  if (s.memory?.refused !== undefined || !arePrimariesWell(s) || relaysOf(s).length > 0) return undefined
  return [...inTurn(s).values()]
    .map(({ slot }) => slot)
    .filter(slot => mayStandStill(slot) && awayFrom(slot).length > 0 && couldTake(s, slot).length === 0)
    .sort((a, b) => a.lease.slot - b.lease.slot)[0]
}

/** What keeps its primary from being saved would keep it from being saved for the last time. */
const mayStandStill = ({ source }: SlotMemory): boolean =>
  source?.reason === undefined && source?.handoverPaused !== true

/** The understudy in which the memory of the slot is, or can be at once; the one that was called stays called. */
function successorOf(
  s: Snapshot,
  slot: SlotMemory,
  isWanted: (pod: PodView) => boolean,
): PodView | undefined {
  const pods = s.pods.filter(
    pod =>
      pod.kind === 'hotbackup' &&
      pod.ready &&
      !pod.waking &&
      isWanted(pod) &&
      pod.stage?.failed === undefined &&
      pod.node !== slot.lease.node,
  )
  // Only where it lies already: a primary stands still for as long as this takes.
  const near = optionsOf(slot, pods).filter(({ rank }) => rank < slowRank)
  const options = near.sort((a, b) => a.rank - b.rank || (a.uid < b.uid ? -1 : 1))
  const uid = options.find(option => option.uid === slot.lease.handover)?.uid ?? options[0]?.uid
  return pods.find(pod => pod.uid === uid)
}

/** Every slot has its primary, which holds it and does what it is for. */
function arePrimariesWell({ set, memory, pods }: Snapshot): boolean {
  const primaries = pods.filter(pod => pod.kind === 'primary')
  return (
    primaries.length === set.replicas &&
    primaries.every(pod => {
      const lease = memory?.slots.get(pod.slot ?? -1)?.lease
      // One that stands still for its successor answers nobody.
      const isWell = pod.ready || lease?.handover !== undefined
      return (
        isWell && !pod.waking && !pod.stage?.died && !pod.stage?.summoned && lease?.holder.uid === pod.uid
      )
    })
  )
}

/** Every backup is there, does what it is for, and is of the new template; and nobody is on his way out. */
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

/** The swap has to reach the node of the primary before that lets it go on, ms. */
const marginMs = 2_000

/**
 * The primary stands still, and its last generation is where its successor is, ready to go on. Its agent says for how long:
 * a report that was not taken back, because the node cannot reach the API server, is worth nothing after that. And one that
 * comes late may be of a handover that was called off since.
 */
export const isHandedOver = ({ slot, successor }: Turn, { monotonicNow }: Snapshot): boolean => {
  const { source, sourceSeenAt } = slot
  const copy = slot.copies.find(({ node }) => node === successor?.node)
  return (
    successor !== undefined &&
    slot.lease.handover === successor.uid &&
    source?.final === true &&
    // An agent of an earlier version does not say for which it stands.
    (source.standsForHandover ?? slot.lease.handovers) === slot.lease.handovers &&
    source.standsForSeconds !== undefined &&
    sourceSeenAt !== undefined &&
    sourceSeenAt + source.standsForSeconds * 1000 - marginMs > monotonicNow &&
    copy?.report.final === true &&
    !copy.stale &&
    copy.report.generation === source.generation &&
    copy.report.takenAt === source.takenAt
  )
}
