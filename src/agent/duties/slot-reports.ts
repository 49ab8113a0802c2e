import {
  diskUnreadReason,
  policyUnknownReason,
  type SlotReport,
  unprovenReason,
} from '../../api/node-report.ts'
import { podConditions, servingReasons, spoiledReason } from '../../api/pod-contract.ts'
import type { SlotLease } from '../../api/slot-lease.ts'
import { slotName } from '../../checkpoint/manifest.ts'
import type { Stored } from '../../checkpoint/store.ts'
import { isWanted } from '../../succession/origin.ts'
import type { PodCondition } from '../conditions.ts'
import { anotherIn, byNumber, fits, isDead, isFor, isFreeUnderstudy } from './duties-of.ts'
import type { SlotProgress } from './progress.ts'
import type { PodView, Snapshot } from './snapshot.ts'
import { unfitImages, unfitNode } from './unfit.ts'

export interface KeptGenerations {
  /** The newest generation of a slot on this node. */
  readonly latest: (lease: SlotLease) => Stored | undefined
  readonly progress: (slot: string) => SlotProgress | undefined
  /** The slot's generations on the disk of this node. */
  readonly onDisk?: (slot: string) => SlotReport['onDisk']
  /** Whether the disk of this node has been read for a slot; absent: there is no disk to read. */
  readonly isRead?: (slot: string) => boolean
  /** Whether a fetch of the slot's generations has not ended, although it may have been aborted. */
  readonly isFetching?: (slot: string) => boolean
}

/** Reports the memory that this node keeps of each slot, and how the slot could be restored from it. Pure. */
export function slotReportsOf(snapshot: Snapshot, kept: KeptGenerations): SlotReport[] {
  return snapshot.slots
    .flatMap(lease => reportOf(snapshot, lease, kept) ?? [])
    .sort((a, b) => (slotName(a) < slotName(b) ? -1 : 1))
}

function reportOf(snapshot: Snapshot, lease: SlotLease, kept: KeptGenerations): SlotReport | undefined {
  const { node } = snapshot
  const isSource = lease.node === node
  const stored = kept.latest(lease)
  // A node that is no holder any more reports its copy until it has none, also where the Lease never said that it has one:
  // the operator may have let it go before it saw the report. Until its last fetch has ended it mentions the slot: the
  // operator takes its silence on the slot for the end.
  const mayHave = stored !== undefined || kept.isFetching?.(slotName(lease)) === true
  if (!isWanted(lease, node) && !mayHave) return undefined
  const progress = kept.progress(slotName(lease))
  const { namespace, name, incarnation } = lease
  const common = {
    namespace,
    name,
    incarnation,
    generation: stored?.manifest.generation ?? 0,
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
  if (isSource) {
    const { intervalSeconds, intervalReason } = progress ?? {}
    const interval = {
      ...(intervalSeconds === undefined ? {} : { intervalSeconds: round(intervalSeconds) }),
      ...(intervalReason === undefined ? {} : { intervalReason }),
    }
    const { standsForSeconds: stands, standsForHandover } =
      stored?.manifest.final === true ? (progress ?? {}) : {}
    const answer =
      progress?.answeredRequest === undefined ? {} : { answeredRequest: progress.answeredRequest }
    const paused = snapshot.handoversPaused.has(slotName(lease)) ? { handoverPaused: true } : {}
    return {
      ...{ ...common, role: 'source', ...interval, ...answer, ...paused },
      ...(stands !== undefined && { final: true, standsForSeconds: round(stands) }),
      ...(stands !== undefined && standsForHandover !== undefined && { standsForHandover }),
      ...leftOf(snapshot, lease, kept),
      ...trouble,
    }
  }
  const onDisk = kept.onDisk?.(slotName(lease))
  const use = usabilityOf(snapshot, lease)
  // A failure outweighs a state that has not been reached yet.
  const why =
    use.usable === undefined || use.reason !== undefined ? { reason: use.reason, message: use.message } : {}
  // Before all other reasons: no generation in the tmpfs does not mean that the node keeps none.
  const { reason, message } = isUnread(lease, kept) ? unread : { ...why, ...trouble }
  return {
    ...common,
    role: 'holder',
    ...(use.usable === undefined ? {} : { usable: use.usable }),
    ...(onDisk === undefined ? {} : { onDisk }),
    ...(use.understudyUid === undefined ? {} : { understudyUid: use.understudyUid }),
    ...(isHandedOver(snapshot, lease) && { final: true }),
    ...(reason === undefined ? {} : { reason }),
    ...(message === undefined ? {} : { message }),
  }
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
  const stage = snapshot.stages.get(pod.uid)
  return stage?.slot === slotName(lease) && stage.state !== 'Frozen'
}

interface Usability {
  readonly usable?: SlotReport['usable']
  readonly understudyUid?: string
  readonly reason?: string
  readonly message?: string
}

/** Returns whether and how this node could restore and resume a slot's memory. */
export function usabilityOf(snapshot: Snapshot, lease: SlotLease): Usability {
  const name = slotName(lease)
  const kept = snapshot.kept.get(name)
  if (kept === undefined) return { reason: 'NoGeneration', message: 'no generation has arrived yet' }
  const unfit = unfitNode(snapshot, kept)
  if (unfit !== undefined) return unfit
  if (!snapshot.able)
    return {
      reason: 'NodeNotReady',
      message:
        'a copy is here, but the node cannot restore it while a check fails; its NodeReport names the check',
    }
  const primaries = new Set(snapshot.slots.map(({ holder }) => holder.uid))
  const free = snapshot.pods.filter(
    pod => isFor(lease, pod) && isFreeUnderstudy(snapshot, pod) && !primaries.has(pod.uid),
  )
  const ofTemplate = free.filter(pod => pod.restoreHash === kept.restoreHash)
  const [first] = ofTemplate
  if (first === undefined)
    return {
      // This node may never have restored memory of this kind, and has no understudy to try it in.
      usable: 'Cold',
      ...(free.length === 0
        ? { reason: 'NoUnderstudy', message: 'no understudy of the set waits on this node' }
        : {
            reason: 'TemplateChanged',
            message: 'the memory is from another template than the understudies on this node',
          }),
    }
  const understudies = ofTemplate.filter(pod => unfitImages(pod, kept) === undefined)
  if (understudies.length === 0) return unfitImages(first, kept) ?? {}
  const frozen = understudies.find(({ uid }) => {
    const stage = snapshot.stages.get(uid)
    return stage?.state === 'Frozen' && stage.slot === name
  })
  if (frozen !== undefined) return { usable: 'Frozen', understudyUid: frozen.uid }
  if (!snapshot.proven.has(kept.restoreHash))
    return { reason: unprovenReason, message: 'this node has not restored memory of this kind yet' }
  const heir = understudies.find(({ uid }) => uid === lease.heir?.uid)
  if (lease.policy?.mode === 'Frozen' && heir !== undefined && !fits(heir, kept))
    return {
      usable: 'Staged',
      reason: 'UnderstudyTooSmall',
      message:
        'the memory and 10 % more do not fit the memory limit of the understudy, so it stays Staged; raise the limit of the container',
    }
  return { usable: 'Staged' }
}

/**
 * Whether the last generation of a stopped primary is here, and its successor could continue at once. Memory that is to
 * be frozen must be frozen: after the switch a failure could not be taken back any more.
 */
function isHandedOver(snapshot: Snapshot, lease: SlotLease): boolean {
  const name = slotName(lease)
  const kept = snapshot.kept.get(name)
  const successor = snapshot.pods.find(({ uid }) => uid === lease.handover)
  if (lease.policy === undefined || kept?.final !== true || successor === undefined) return false
  if (!isFreeUnderstudy(snapshot, successor) || successor.restoreHash !== kept.restoreHash) return false
  if (lease.policy.mode !== 'Frozen' || lease.heir?.uid !== successor.uid || !fits(successor, kept))
    return snapshot.proven.has(kept.restoreHash)
  const stage = snapshot.stages.get(successor.uid)
  return stage?.slot === name && stage.generation === kept.generation && stage.epoch === kept.epoch
}

/** Returns the condition `understudy` of a pod that waits for a slot; undefined for any other pod. Pure. */
export function understudyConditionOf(snapshot: Snapshot, pod: PodView): PodCondition | undefined {
  if (!pod.understudy || pod.terminating || snapshot.slots.some(({ holder }) => holder.uid === pod.uid))
    return undefined
  const type = podConditions.understudy
  const no = (reason: string, message: string) => ({ type, status: 'False', reason, message }) as const
  if (!snapshot.able) return no('NodeNotReady', 'this node cannot restore memory; its NodeReport says why')
  if (snapshot.spoiled?.has(pod.uid))
    return no(
      spoiledReason,
      'an earlier restore left changes that the agent cannot undo: the operator replaces it',
    )
  if (!isFreeUnderstudy(snapshot, pod)) return no('NotHolding', 'its containers do not run as an understudy')
  const stage = snapshot.stages.get(pod.uid)
  const slots = snapshot.slots
    .filter(lease => isFor(lease, pod))
    .map(lease => ({ lease, use: usabilityOf(snapshot, lease) }))
  const frozen = slots.find(({ lease }) => stage?.state === 'Frozen' && stage.slot === slotName(lease))
  if (frozen !== undefined)
    return { type, status: 'True', reason: 'Frozen', message: `slot ${frozen.lease.name} is frozen here` }
  const staged = slots
    .filter(({ use }) => use.usable === 'Frozen' || use.usable === 'Staged')
    .map(({ lease }) => lease.name)
  if (staged.length > 0)
    return {
      type,
      status: 'True',
      reason: 'Staged',
      message: `can take over slot ${staged.sort(byNumber).join(', ')}`,
    }
  const [first] = slots.filter(({ lease }) => lease.holders.includes(snapshot.node))
  return no(first?.use.reason ?? 'NoGeneration', first?.use.message ?? 'this node has no memory of the set')
}

/**
 * Returns the condition `serving` of a primary whose slot has begun a new life in it, after a death that left no
 * memory; undefined for any other pod. Pure.
 */
export function revivalOf(snapshot: Snapshot, pod: PodView): PodCondition | undefined {
  const lease = snapshot.slots.find(({ holder }) => holder.uid === pod.uid)
  if (lease === undefined || pod.understudy || pod.terminating) return undefined
  if (!isDead(snapshot, pod) || isDead(snapshot, pod, slotName(lease))) return undefined
  if (!pod.containers.every(({ running }) => running)) return undefined
  return {
    type: podConditions.serving,
    status: 'True',
    reason: servingReasons.onStage,
    message: `slot ${lease.name} started empty after its memory was lost`,
  }
}

const round = (seconds: number): number => Math.round(seconds * 1e6) / 1e6
