/** A handover: a primary is stopped with its last generation saved, and another pod takes its slot. */
import { isNewerTold, stepsBehind } from './age.ts'
import { toldOf } from './copy-age.ts'
import { handoverDeadlineMs, handoverSlackMs } from './deadlines.ts'
import type { Copy, SlotMemory } from './memory-view.ts'
import type { Candidate, SlotSnapshot } from './snapshot.ts'
import { reportsStuck } from './stuck.ts'
import { optionsOf, slowRank } from './successors.ts'

export interface Handover {
  readonly primary: Candidate
  readonly slot: SlotMemory
  /** The understudy that takes the slot with its memory; undefined: the slot begins a new, empty incarnation. */
  readonly successor: Candidate | undefined
}

/**
 * A cause that keeps the agent from saving the primary would also keep it from saving the last generation. An agent that is silent
 * stops no primary, or does so when the time of the handover is over.
 */
export const mayStandStill = ({ lease, source, sourceSeenAt }: SlotMemory): boolean =>
  source?.reason === undefined &&
  source?.handoverPaused !== true &&
  (lease.handover !== undefined || sourceSeenAt !== undefined)

/**
 * True if this process has requested the handover so long ago that no stop for it counts any more (`standsUntil`): the agent is away,
 * began late, or the memory did not arrive. An agent that is silent withdraws no report, so it does not matter what the last one says.
 */
export const isOverdue = (slot: SlotMemory, { monotonicNow }: Pick<SlotSnapshot, 'monotonicNow'>): boolean =>
  monotonicNow >= overdueAt(slot)

/** Returns when that is, monotonic ms; infinity: this process has requested none. */
export function overdueAt({ lease, source, handoverRequestedAt }: SlotMemory): number {
  if (handoverRequestedAt === undefined || lease.handover === undefined) return Number.POSITIVE_INFINITY
  const told = source?.standsForHandover === lease.handovers ? source?.standsForSeconds : undefined
  const longestMs = Math.max(handoverDeadlineMs(source?.bytes), (told ?? 0) * 1000)
  return handoverRequestedAt + longestMs + handoverSlackMs
}

/**
 * Returns the understudy on whose node the memory of the slot is. An understudy that the Lease already names stays the
 * choice.
 */
export function handoverSuccessor<Pod extends Candidate>(
  all: readonly Pod[],
  slot: SlotMemory,
): Pod | undefined {
  const pods = all.filter(
    pod =>
      pod.kind === 'hotbackup' &&
      pod.ready &&
      !pod.waking &&
      pod.stage?.failed === undefined &&
      pod.node !== slot.lease.node &&
      // A handover in progress continues: the missing generations are on their way.
      (pod.uid === slot.lease.handover ||
        !slot.copies.some(copy => copy.node === pod.node && (!copy.timely || isStuck(slot, copy)))),
  )
  // Only nodes that have the memory already: the primary stays stopped for as long as a transfer takes.
  const near = optionsOf(slot, pods).filter(({ rank }) => rank < slowRank)
  const options = near.sort((a, b) => a.rank - b.rank || (a.uid < b.uid ? -1 : 1))
  const uid = options.find(option => option.uid === slot.lease.handover)?.uid ?? options[0]?.uid
  return pods.find(pod => pod.uid === uid)
}

/**
 * True if the newest generation does not reach the node: the primary would stay stopped until the deadline. A reason may outlast its
 * cause until the next generation comes, so it counts only where one is missing.
 */
const isStuck = ({ lease, source }: SlotMemory, copy: Copy): boolean =>
  reportsStuck(copy) &&
  source !== undefined &&
  isNewerTold(toldOf({ report: source }, lease), toldOf(copy, lease))

/**
 * Returns why this holder would not have the last generation of the primary within seconds, as a phrase to follow its name;
 * undefined: it would. Once the primary is stopped, it may lack more, because more is on its way.
 */
export function whyNoReceiver({ lease, copies, source, intervalMs }: SlotMemory, holder: string) {
  const copy = copies.find(({ node }) => node === holder)
  if (copy === undefined) return 'has no copy yet'
  if (!copy.timely) return 'has an agent that is silent'
  if (reportsStuck(copy)) return `reports ${copy.report.reason}`
  if (lease.handover === lease.holder.uid || source === undefined) return undefined
  const lacks = stepsBehind(toldOf(copy, lease), toldOf({ report: source }, lease), intervalMs)
  return lacks === 0 ? undefined : 'has a copy that is too old'
}

/** The swap of the Lease has to reach the primary's node before its agent resumes the primary, ms. */
const marginMs = 2_000

/**
 * Returns until when the primary certainly stays stopped, monotonic ms. The stop begins after the request. A report that
 * arrives late may be of a primary that runs again, so the time counts from the request. Only its writer knows when
 * that was.
 */
export const standsUntil = ({ source, sourceSeenAt, handoverRequestedAt }: SlotMemory): number =>
  source?.standsForSeconds === undefined || sourceSeenAt === undefined || handoverRequestedAt === undefined
    ? Number.NEGATIVE_INFINITY
    : Math.min(sourceSeenAt, handoverRequestedAt) + source.standsForSeconds * 1000 - marginMs

/**
 * True if the primary is stopped, and its last generation is on the node of its successor, which can continue with it.
 * The agent reports how long the stop lasts. After that the report proves nothing: a node that cannot reach the API
 * server cannot withdraw it. A late report may also belong to a handover that was called off since.
 */
export const isHandedOver = (
  { slot, successor }: Pick<Handover, 'slot' | 'successor'>,
  { monotonicNow }: Pick<SlotSnapshot, 'monotonicNow'>,
): boolean => {
  const copy = slot.copies.find(({ node }) => node === successor?.node)
  return (
    successor !== undefined &&
    isStandingFor(slot, successor.uid, monotonicNow) &&
    copy?.report.final === true &&
    isLastCopy(slot, copy)
  )
}

/**
 * Returns the nodes, beside its own, that have the last generation of a primary which is stopped without a successor, after
 * a handover to itself. Empty: it runs, or may run again by now, or no other node has that generation yet.
 */
export const savedOn = (
  slot: SlotMemory,
  { monotonicNow }: Pick<SlotSnapshot, 'monotonicNow'>,
): readonly string[] =>
  isStandingFor(slot, slot.lease.holder.uid, monotonicNow)
    ? slot.copies
        .filter(copy => copy.node !== slot.lease.node && isLastCopy(slot, copy))
        .map(({ node }) => node)
    : []

/** @param uid of the pod that the Lease names for the handover. */
function isStandingFor(slot: SlotMemory, uid: string, monotonicNow: number): boolean {
  const { source } = slot
  return (
    slot.lease.handover === uid &&
    source?.final === true &&
    monotonicNow < standsUntil(slot) &&
    // An agent of an earlier version does not report for which handover the primary is stopped.
    (source.standsForHandover ?? slot.lease.handovers) === slot.lease.handovers
  )
}

const isLastCopy = ({ source }: SlotMemory, { report, stale }: Copy): boolean =>
  !stale && report.generation === source?.generation && report.takenAt === source.takenAt
