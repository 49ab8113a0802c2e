import { diskUnreadReason, policyUnknownReason, type SlotReport } from '../../api/node-report.ts'
import type { SlotLease } from '../../api/slot-lease.ts'
import { slotName } from '../../checkpoint/manifest.ts'
import type { Stored } from '../../checkpoint/store.ts'
import { isWanted } from '../../slot/decide/origin.ts'
import { isDead } from '../observe/pod-facts.ts'
import type { Snapshot } from '../observe/snapshot.ts'
import type { SlotProgress, Standing } from '../state/progress.ts'
import { anotherIn } from './slot-facts.ts'
import { successorHas, usabilityOf } from './usability.ts'

export interface KeptGenerations {
  /** The newest generation of a slot on this node. */
  readonly latest: (lease: SlotLease) => Stored | undefined
  readonly progress: (slot: string) => SlotProgress | undefined
  /** The slot's generations on the disk of this node. */
  readonly onDisk?: (slot: string) => SlotReport['onDisk']
  /** Why the disk of this node takes no newer generation of a slot; undefined: no write of it was refused. */
  readonly diskRefusal?: (slot: string) => string | undefined
  /** Whether the disk of this node has been read for a slot; absent: there is no disk to read. */
  readonly isRead?: (slot: string) => boolean
  /** Whether a fetch of the slot's generations has not ended, although it may have been aborted. */
  readonly isFetching?: (slot: string) => boolean
  /** Whether the pod with this uid is gone, and nothing runs any more that was watched of it. */
  readonly isEnded?: (uid: string) => boolean
}

/** Reports the memory that this node keeps of each slot, and how the slot could be restored from it. Pure. */
export function slotReportsOf(snapshot: Snapshot, kept: KeptGenerations): SlotReport[] {
  return snapshot.slots
    .flatMap(lease => reportOf(snapshot, lease, kept) ?? [])
    .sort((a, b) => (slotName(a) < slotName(b) ? -1 : 1))
}

function reportOf(snapshot: Snapshot, lease: SlotLease, kept: KeptGenerations): SlotReport | undefined {
  const { node } = snapshot
  const stored = kept.latest(lease)
  // A node that is no holder any more reports its copy until it has none, also where the Lease never said that it has one:
  // the operator may have let it go before it saw the report. Until its last fetch has ended it mentions the slot: the
  // operator takes its silence on the slot for the end.
  const mayHave = stored !== undefined || kept.isFetching?.(slotName(lease)) === true
  const { silent, suspects } = snapshot.fence
  const silentTerm = termOf(silent, lease)
  const suspectTerm = termOf(suspects, lease)
  // A voter says what it has stated, also when it is no holder any more.
  // So does an heir that is no holder any more: without its word, its grant would not end.
  const grant = snapshot.grantWords.get(slotName(lease))
  if (!isWanted(lease, node) && !mayHave && silentTerm === undefined && grant === undefined) return undefined
  const progress = kept.progress(slotName(lease))
  const diskReason = kept.diskRefusal?.(slotName(lease))
  const { namespace, name, incarnation } = lease
  const common = {
    namespace,
    name,
    incarnation,
    generation: stored?.manifest.generation ?? 0,
    ...(silentTerm !== undefined && { silentTerm }),
    ...(suspectTerm !== undefined && { suspectTerm }),
    ...(grant !== undefined && { grant }),
    ...(diskReason !== undefined && { diskReason }),
    ...(stored === undefined
      ? {}
      : {
          epoch: stored.manifest.epoch,
          ...(stored.manifest.signed && { signed: true }),
          takenAt: stored.manifest.takenAt,
          bytes: stored.manifest.bytes,
          frozenSeconds: round(stored.manifest.frozenSeconds),
          pipelineSeconds: round(stored.pipelineMs / 1000),
        }),
  }
  const failure =
    progress?.reason === undefined ? {} : { reason: progress.reason, message: progress.message ?? '' }
  const trouble = lease.policy === undefined ? policyUnknown : failure
  return lease.node === node
    ? { ...common, role: 'source', ...sourceOf(snapshot, lease, kept, stored, progress), ...trouble }
    : { ...common, role: 'holder', ...holderOf(snapshot, lease, kept, trouble) }
}

/** The part of a report that only the node of the slot's primary has. */
function sourceOf(
  snapshot: Snapshot,
  lease: SlotLease,
  kept: KeptGenerations,
  stored: Stored | undefined,
  progress: SlotProgress = {},
): Partial<SlotReport> {
  const { intervalSeconds, intervalReason, answeredRequest } = progress
  const standing = stored?.manifest.final === true ? progress.standing : undefined
  return {
    ...(intervalSeconds !== undefined && { intervalSeconds: round(intervalSeconds) }),
    ...(intervalReason !== undefined && { intervalReason }),
    ...(answeredRequest !== undefined && { answeredRequest }),
    ...(snapshot.handoversPaused.has(slotName(lease)) && { handoverPaused: true }),
    ...standingOf(standing),
    ...acknowledgedOf(snapshot, lease),
    ...(snapshot.fence.fenced.has(lease.holder.uid) && { fenced: true }),
    ...(kept.isEnded?.(lease.holder.uid) === true && { ended: lease.holder.uid }),
    ...leftOf(snapshot, lease, kept),
  }
}

function standingOf(standing: Standing | undefined): Partial<SlotReport> {
  if (standing === undefined) return {}
  const { seconds, stoodSeconds, handover } = standing
  return {
    ...{ final: true, standsForSeconds: round(seconds) },
    ...(stoodSeconds !== undefined && { stoodForSeconds: round(stoodSeconds) }),
    ...(handover !== undefined && { standsForHandover: handover }),
  }
}

/** A statement, or a suspicion, counts for its term only. */
function termOf(known: ReadonlyMap<string, number>, lease: SlotLease): number | undefined {
  const term = known.get(slotName(lease))
  return lease.fence !== undefined && term !== undefined && term >= lease.fence.term ? term : undefined
}

function acknowledgedOf({ fence }: Snapshot, lease: SlotLease): Pick<SlotReport, 'acknowledged'> {
  const { term, acknowledged } = fence.guarded.get(lease.holder.uid) ?? {}
  if (term === undefined || acknowledged?.slot !== slotName(lease)) return {}
  return { acknowledged: { term, version: acknowledged.version } }
}

/** The part of a report that only a node without the slot's primary has. */
function holderOf(
  snapshot: Snapshot,
  lease: SlotLease,
  kept: KeptGenerations,
  trouble: Pick<SlotReport, 'reason' | 'message'>,
): Partial<SlotReport> {
  const onDisk = kept.onDisk?.(slotName(lease))
  const use = usabilityOf(snapshot, lease)
  // A failure outweighs a state that has not been reached yet.
  const why =
    use.usable === undefined || use.reason !== undefined ? { reason: use.reason, message: use.message } : {}
  // Before all other reasons: no generation in the tmpfs does not mean that the node keeps none.
  const { reason, message } = isUnread(lease, kept) ? unread : { ...why, ...trouble }
  return {
    ...(use.usable === undefined ? {} : { usable: use.usable }),
    ...(onDisk === undefined ? {} : { onDisk }),
    ...(use.understudyUid === undefined ? {} : { understudyUid: use.understudyUid }),
    ...handedOverOf(snapshot, lease),
    ...(reason === undefined ? {} : { reason }),
    ...(message === undefined ? {} : { message }),
  }
}

function handedOverOf(
  snapshot: Snapshot,
  lease: SlotLease,
): Pick<SlotReport, 'successorGeneration' | 'final'> {
  const has = successorHas(snapshot, lease)
  if (has === undefined) return {}
  return { successorGeneration: has.generation, ...(has.final && { final: true }) }
}

const policyUnknown = {
  reason: policyUnknownReason,
  message:
    'nothing new is saved or fetched here, because this agent cannot read the policy in the Lease of the slot: install operator and agents of one version',
} as const

const unread = {
  reason: diskUnreadReason,
  message: 'the agent has not searched the disk for it yet',
} as const

const isUnread = (lease: SlotLease, { latest, onDisk, isRead }: KeptGenerations): boolean =>
  latest(lease) === undefined &&
  onDisk?.(slotName(lease)) === undefined &&
  isRead?.(slotName(lease)) === false

/**
 * How the slot could continue from the node of its last primary. Says nothing while that primary is on stage;
 * afterwards the node is a holder like any other, perhaps the only one.
 */
function leftOf(snapshot: Snapshot, lease: SlotLease, kept: KeptGenerations): Partial<SlotReport> {
  const onDisk = kept.onDisk?.(slotName(lease))
  const there = onDisk === undefined ? {} : { onDisk }
  if (isOnStage(snapshot, lease)) return there
  if (isUnread(lease, kept)) return unread
  const { usable, understudyUid, reason, message } = usabilityOf(snapshot, lease)
  if (usable !== undefined) return { ...there, usable, ...(understudyUid !== undefined && { understudyUid }) }
  // A slot without any generation yet has no failure to report.
  if (kept.latest(lease) === undefined || reason === undefined) return there
  return { ...there, reason, ...(message !== undefined && { message }) }
}

/** Whether the pod that the Lease names runs here with the slot's memory. */
function isOnStage(snapshot: Snapshot, lease: SlotLease): boolean {
  const pod = snapshot.pods.find(({ uid }) => uid === lease.holder.uid)
  if (pod === undefined || isDead(snapshot, pod, slotName(lease))) return false
  if (!pod.understudy) return anotherIn(snapshot, lease, pod) === undefined
  if (snapshot.fence.fenced.has(pod.uid)) return true
  const stage = snapshot.stages.get(pod.uid)
  return stage?.slot === slotName(lease) && stage.state !== 'Frozen'
}

const round = (seconds: number): number => Math.round(seconds * 1e6) / 1e6
