import { isCloning, isUnserved } from '../../api/clone-of.ts'
import { diskUnreadReason, policyUnknownReason, unprovenReason } from '../../api/node-report.ts'
import type { NumberedSlotLease } from '../../api/numbered-slot.ts'
import { kindLabelOf } from '../../api/pod-kind.ts'
import { servingRecordOf } from '../../api/serving-record.ts'
import { formatSlotKey, isSameSlot } from '../../api/slot-key.ts'
import { restartsOf } from '../../api/slot-lease.ts'
import type { Clock } from '../../kube/clock.ts'
import type { Pod } from '../../kube/resources.ts'
import { isNewerTold } from '../decide/age.ts'
import { timelyMs } from '../decide/deadlines.ts'
import { isExpectedToGo } from '../decide/ending.ts'
import { isKept } from '../decide/kept.ts'
import { type Answer, isSavedElsewhere, keepsAtSource, unaskedOf } from '../decide/knowledge.ts'
import type { Copy, SlotMemory, StageView } from '../decide/memory-view.ts'
import { isNamed } from '../decide/origin.ts'
import { grantsOf, isNodeLost } from './grants.ts'
import type { HandoverTimes } from './handover-times.ts'
import { type Reports, staleMs } from './reports.ts'
import type { Since } from './since.ts'
import type { SlotLeaseObject } from './slot-leases.ts'
import { goesBy, goneBy, isOnStage, replacedIn } from './slot-primary.ts'
import type { stageOf } from './stage.ts'
import { votesOf } from './votes.ts'

export interface SlotDeps {
  readonly reports: Reports
  readonly clock: Clock
  /** True for a pod whose deletion the API server has accepted from us. */
  readonly isDeleted: (uid: string) => boolean
  readonly handoverTimes: Pick<HandoverTimes, 'requestedAt'>
}

/** The facts that all slots of an owner share in one pass. */
export interface SlotPass {
  /** The interval that the owner asks for. */
  readonly intervalMs: number
  readonly deps: SlotDeps
  readonly podByUid: (uid: string) => Pod | undefined
  readonly stageOf: typeof stageOf
  readonly told: ReturnType<Reports['ofSet']>
  readonly since: ReturnType<Since['pass']>
  /** See `grantsOf`. */
  readonly lostAfterMs: (node: string) => number | undefined
  /** Memory must not be kept any more, and that has lasted. */
  readonly refusedForLong: boolean
}

/** A node's report on one slot. */
type Told = SlotPass['told'][number]

/**
 * A node whose agent could keep memory this recently stays a holder: an update of the agents must not move copies
 * about, ms.
 */
export const awayMs = 300_000

/** Returns what Leases and reports say about one slot. */
export function observeSlot({ lease, object }: SlotLeaseObject, pass: SlotPass): SlotMemory {
  const { deps, since } = pass
  const { uid, resourceVersion } = object.metadata
  const incarnation = `${uid}/${lease.incarnation}`
  const holder = pass.podByUid(lease.holder.uid)
  const stage = holder && pass.stageOf(holder)
  const restarts = restartsOf(object)
  const replaced = replacedIn(holder, stage, lease, restarts)
  const runsAnother = replaced !== 'No'
  // Then the node of the last primary is a node like any other: it has the memory that was saved there, and the
  // memory with which the successor was to continue. Perhaps no other node has any.
  const isVacant = runsAnother || !isOnStage(holder, stage, deps)
  const end = endOfPrimary(lease, holder, stage, { isVacant, incarnation }, pass)
  const { emptySince } = end
  const isAsked = isVacant && !pass.refusedForLong
  const isCalled = stage?.understudy === true && !stage.serving && kindLabelOf(holder) !== 'primary'
  const here = pass.told
    .filter(({ node, slot }) => isSameSlot(slot, lease) && isNamed(lease, node))
    .map(told => withLeft(told, lease, holder, { emptySince, deps }))
  const source = here.find(({ node, slot }) => slot.role === 'source' && node === lease.node)
  const copies = copiesOf(lease, here, isAsked, deps)
  const { answers, isSaved } = answersOf(lease, here, { emptySince, incarnation }, pass)
  const atSource = answers.find(({ node }) => node === lease.node)
  const unasked = unaskedOf(lease, answers, {
    isVacant: isAsked,
    isDeath: stage?.died === true,
    isLong: emptySince !== undefined && deps.clock.monotonic() - emptySince >= awayMs,
  })
  return {
    lease,
    uid,
    resourceVersion,
    restarts,
    intervalMs: pass.intervalMs,
    replacedSince: since(`replaced/${incarnation}/${lease.epoch}`, runsAnother),
    remains: replaced === 'Partly',
    // No slot waits for a primary if the set has no place for it.
    vacantSince: since(`vacant/${incarnation}`, lease.retainedSince === undefined && isVacant),
    endedSince: end.endedSince,
    retainedSeenAt: since(`retained/${uid}/${lease.retainedSince}`, lease.retainedSince !== undefined),
    holderGoesBy: holder ? end.goesBy : goneBy(lease, source?.slot.ended, since),
    isNodeLost: end.isNodeLost,
    source: source?.slot,
    sourceKeeps: !pass.refusedForLong && keepsAtSource(lease, atSource, isSaved),
    sourceSeenAt: source && isTimely(source.node, deps) ? source.seenAt : undefined,
    endingSince: since(`ending/${incarnation}/${lease.epoch}`, lease.ending === lease.holder.uid),
    calledSince: since(`called/${incarnation}/${lease.epoch}`, isCalled),
    comingSince: since(`coming/${incarnation}`, isCalled),
    resumingSince: since(`resuming/${incarnation}/${lease.epoch}`, isCalled && stage.resuming),
    handoverRequestedAt: deps.handoverTimes.requestedAt(lease),
    settledSince: since(`settled/${incarnation}/${lease.epoch}`, lease.handover === undefined),
    unfencedSince: since(`unfenced/${incarnation}/${lease.epoch}`, !mayBeFenced(lease, source?.slot, deps)),
    copies,
    votes: votesOf(lease, pass.told, deps, since),
    grants: grantsOf(lease, pass.told, { ...pass, reports: deps.reports }),
    fetching: fetchingOf(incarnation, lease, here, copies, pass),
    unasked,
    uncopiedSince: uncopiedSince(lease, incarnation, { source, places: [...copies, ...unasked] }, pass),
  }
}

/**
 * A primary that is being deleted may serve on for seconds, and then be saved once more: what its node has said before its end is old
 * by then.
 *
 * @returns emptySince: since when no pod runs with this memory. endedSince: the same, but not while the memory is only kept.
 */
function endOfPrimary(
  lease: NumberedSlotLease,
  holder: Pod | undefined,
  stage: StageView | undefined,
  { isVacant, incarnation }: { readonly isVacant: boolean; readonly incarnation: string },
  pass: SlotPass,
) {
  const { deps, since } = pass
  const isLost = lease.node !== undefined && isNodeLost(lease.node, { ...pass, reports: deps.reports })
  const goes = holder && goesBy(holder, stage, deps, since)
  const isEmpty =
    isVacant && !isExpectedToGo({ holderGoesBy: goes, isNodeLost: isLost }, deps.clock.monotonic())
  return {
    isNodeLost: isLost,
    goesBy: goes,
    emptySince: since(`empty/${incarnation}`, isEmpty),
    endedSince: since(`ended/${incarnation}`, lease.retainedSince === undefined && isEmpty),
  }
}

/** @param incarnation of the slot, for the key of `since`. @param places all nodes that have, or may have, its memory. */
function uncopiedSince(
  lease: NumberedSlotLease,
  incarnation: string,
  {
    source,
    places,
  }: { readonly source: Told | undefined; readonly places: readonly { readonly node: string }[] },
  { deps, since }: SlotPass,
): number | undefined {
  const isMissing = isCloning(lease)
    ? source !== undefined && isRefusal(source.slot)
    : isUnserved(lease) && places.length > 0 && places.every(({ node }) => !isFresh(node, deps))
  return since(`uncopied/${incarnation}/${lease.epoch}`, isMissing)
}

/** Reasons that end by themselves while the node is well. */
const passingReasons: readonly string[] = [policyUnknownReason, diskUnreadReason, unprovenReason]

/** True if the agent says why it has no memory of the slot that could be used. */
const isRefusal = ({ usable, reason }: Told['slot']): boolean =>
  usable === undefined && reason !== undefined && !passingReasons.includes(reason)

/**
 * Returns the report of the dead primary's node as it is going to be, by the record of the death: the agent writes that some
 * milliseconds before its report. A report from after the death counts as it is.
 */
function withLeft(
  told: Told,
  lease: NumberedSlotLease,
  holder: Pod | undefined,
  { emptySince, deps }: { readonly emptySince: number | undefined; readonly deps: SlotDeps },
): Told {
  const { node, slot } = told
  if (holder === undefined || emptySince === undefined || node !== lease.node || slot.role !== 'source')
    return told
  if (slot.usable !== undefined || slot.reason !== undefined || wasHeardSince(node, emptySince, deps))
    return told
  const { diedWith, left } = servingRecordOf(holder)
  if (left === undefined || diedWith !== formatSlotKey(lease)) return told
  // By the same clock: the record stays on the pod whatever becomes of its node.
  if (told.writtenAt === undefined || told.writtenAt >= left.at) return told
  const { epoch, generation } = slot
  if (isNewerTold({ ...(epoch !== undefined && { epoch }), generation, takenAt: 0 }, { ...left, takenAt: 0 }))
    return told
  const seenAt = left.generation === generation ? told.seenAt : emptySince
  const { at: _, ...memory } = left
  return { ...told, slot: { ...slot, ...memory }, seenAt }
}

/** An agent that is cut off cannot report that the sentinel has stopped its primary. */
const mayBeFenced = (
  { fence, node }: NumberedSlotLease,
  said: Told['slot'] | undefined,
  { reports }: SlotDeps,
): boolean =>
  said?.fenced === true ||
  (fence?.isArmed === true && node !== undefined && reports.unheardFor(node) >= timelyMs)

function copiesOf(
  lease: NumberedSlotLease,
  here: readonly Told[],
  isAsked: boolean,
  deps: SlotDeps,
): readonly Copy[] {
  // A node that had the previous primary has its memory, whether or not its agent has read the Lease since.
  const isHolders = ({ node, slot }: Told) => slot.role === 'holder' || node !== lease.node
  return here
    .filter(each => (isHolders(each) || isAsked) && isKept(each.slot))
    .map(
      ({ node, slot, seenAt }): Copy => ({
        node,
        report: slot,
        seenAt,
        stale: !isFresh(node, deps) || deps.reports.knows(node) === false,
        silent: !isFresh(node, deps),
        timely: isTimely(node, deps),
      }),
    )
    .sort((a, b) => (a.node < b.node ? -1 : 1))
}

/**
 * Returns what each node with an agent says about the slot, and whether another node shows that the primary has saved.
 * @param at `incarnation` of the slot, for the keys of `since`.
 */
function answersOf(
  lease: NumberedSlotLease,
  here: readonly Told[],
  { emptySince, incarnation }: { readonly emptySince: number | undefined; readonly incarnation: string },
  { deps, since }: SlotPass,
): { readonly answers: readonly Answer[]; readonly isSaved: boolean } {
  const { node: source, kept = [] } = lease
  const said = here.map(({ node, slot: report }) => ({ node, report }))
  const isSaved = isSavedElsewhere(lease, said)
  // A report from while the last primary ran may be older than the node's first generation, and one of the present primary's node older
  // than its first save, which another node shows.
  const isSourceNamed = source !== undefined && kept.includes(source)
  const sinceMs = emptySince ?? since(`epoch/${incarnation}/${lease.epoch}`, true)
  const savedAt = since(`saved/${incarnation}/${lease.epoch}`, isSaved || isSourceNamed)
  const answers = deps.reports.all().map(({ metadata: { name: node }, status }) => {
    const times = node === source ? [sinceMs, savedAt] : [sinceMs]
    return {
      ...{ node, status },
      report: said.find(each => each.node === node)?.report,
      fresh:
        isFresh(node, deps) && times.every(time => time === undefined || wasHeardSince(node, time, deps)),
    }
  })
  return { answers, isSaved }
}

/** @param incarnation of the slot, for the keys of `since`. */
function fetchingOf(
  incarnation: string,
  lease: NumberedSlotLease,
  here: readonly Told[],
  copies: readonly Copy[],
  { deps, since }: SlotPass,
): readonly string[] {
  const mayFetch = (node: string) => {
    const isLetGo = !lease.holders.includes(node)
    const letGoAt = since(`let-go/${incarnation}/${node}`, isLetGo)
    // Its agent mentions a slot without a copy until it has read that, and its fetch has ended.
    const isMentioned = here.some(each => each.node === node)
    return (
      isFresh(node, deps) && (letGoAt === undefined || isMentioned || !wasHeardSince(node, letGoAt, deps))
    )
  }
  return [...new Set([...lease.holders, ...(lease.kept ?? [])])].filter(
    node => node !== lease.node && !copies.some(copy => copy.node === node) && mayFetch(node),
  )
}

const isFresh = (node: string, { reports }: SlotDeps) => reports.silentFor(node) <= staleMs
const wasHeardSince = (node: string, at: number, { reports, clock }: SlotDeps) =>
  reports.silentFor(node) <= clock.monotonic() - at
const isTimely = (node: string, { reports }: SlotDeps) =>
  reports.silentFor(node) <= timelyMs && reports.knows(node) !== false
