import { annotations, labels } from '../../api/labels.ts'
import type { NumberedSlotLease } from '../../api/numbered-slot.ts'
import {
  confinedAnnotation,
  containerIdsOf,
  isUnderstudy,
  memoryAnnotation,
  migrationAnnotation,
  podConditions,
  savedAnnotation,
  servingReasons,
  spoiledReason,
  successorAnnotation,
} from '../../api/pod-contract.ts'
import { kindLabelOf, retired } from '../../api/pod-kind.ts'
import { servingRecordOf } from '../../api/serving-record.ts'
import type { Pod } from '../../kube/resources.ts'
import type { StageView } from '../decide/memory-view.ts'
import type { Candidate } from '../decide/snapshot.ts'
import { natural } from './candidate.ts'

/**
 * Reason of the condition `understudy` with which an agent reports that it could not restore and resume the pod's
 * memory.
 */
export const restoreFailed = 'RestoreFailed'

/** Returns what the conditions of a pod say. Agents write them, so no part of them is taken for granted. */
export function stageOf(pod: Pod): StageView {
  const { serving: isSaid, death, resuming } = servingOf(pod)
  const record = servingRecordOf(pod)
  const replaced = isSaid && isUnderstudy(pod) ? replacedIn(pod) : 'No'
  const serving = isSaid && replaced === 'No'
  // A restart of any other container costs no memory that is kept.
  const containers = savedContainersOf(pod)
  const understudy = conditionOf(pod, podConditions.understudy)
  const failed = understudy?.status === 'False' && understudy.reason === restoreFailed
  const spoiled = understudy?.status === 'False' && understudy.reason === spoiledReason
  return {
    keeps: pod.metadata.annotations?.[memoryAnnotation] !== undefined,
    understudy: isUnderstudy(pod),
    successorOf: natural(pod.metadata.annotations?.[successorAnnotation]),
    ...(pod.metadata.annotations?.[migrationAnnotation] && {
      madeFor: pod.metadata.annotations[migrationAnnotation],
    }),
    ...(pod.metadata.annotations?.[confinedAnnotation] && { confined: true }),
    died: death !== undefined,
    ...(death !== undefined && record.byItself === false && { ended: true }),
    restarts: containers.reduce((sum, { restartCount }) => sum + restartCount, 0),
    containers: containerIdsOf(pod),
    replaced,
    serving,
    // A restore that failed has left nothing that runs.
    resuming: resuming && !failed && !spoiled,
    unpublishedMs: undefined,
    selectable: conditionOf(pod, 'Ready')?.status === 'True',
    promoting: false,
    spoiled,
    failed: failed && !serving ? (understudy.message ?? restoreFailed) : undefined,
    ip: pod.status?.podIP,
    handoverRequested: Boolean(pod.metadata.annotations?.[annotations.handoverRequested]),
    restoreHash: pod.metadata.labels?.[labels.restoreHash],
    memory: record.memory,
  }
}

/** Returns which of the containers that the agent reported on stage were replaced: the new ones only hold the place. */
function replacedIn(pod: Pod): StageView['replaced'] {
  const { containers } = servingRecordOf(pod)
  const ids = containerIdsOf(pod)
    ?.split(',')
    .map(pair => pair.slice(pair.indexOf('=') + 1))
  if (containers === undefined || ids === undefined) return 'No'
  const known = new Set<unknown>(Object.values(containers))
  if (ids.every(id => known.has(id))) return 'No'
  return ids.some(id => known.has(id)) ? 'Partly' : 'Wholly'
}

/**
 * Returns what the agent reports in the condition `serving`. Its reason `Died` means that the app has ended and must
 * not answer any more. An app that resumes, or does not answer, may run.
 *
 * death: a text that differs from one death of a pod to the next; undefined: it is not dead.
 */
export function servingOf(pod: Pod): {
  readonly serving: boolean
  readonly resuming: boolean
  readonly death: string | undefined
} {
  const condition = conditionOf(pod, podConditions.serving)
  // Its status does not count then: it is True while the heir answers the pod's connections.
  const died = condition?.reason === servingReasons.died
  return {
    serving: condition?.status === 'True' && !died,
    resuming: condition?.status === 'False' && mayRunReasons.has(condition.reason ?? ''),
    death: died ? (condition.message ?? 'unknown') : undefined,
  }
}

const mayRunReasons: ReadonlySet<string> = new Set([servingReasons.resuming, servingReasons.notAnswering])

/** Returns the status of each container whose memory is saved. */
function savedContainersOf({ metadata, status }: Pod) {
  const saved = metadata.annotations?.[savedAnnotation]?.split(',')
  return (status?.containerStatuses ?? []).filter(({ name }) => saved?.includes(name) ?? true)
}

/**
 * True if the containers of the pod run: an understudy holds the place, whatever its readiness gate says. Probes fail
 * while an app is frozen, so the word of the agent counts beside that of the kubelet. It counts only as long as the
 * containers run: the condition that an agent wrote before its node was restarted stays until the next agent writes.
 */
export function holds(pod: Pod): boolean {
  const isTrue = (type: string) => conditionOf(pod, type)?.status === 'True'
  if (isTrue('Ready') || isTrue('ContainersReady')) return true
  const containers = savedContainersOf(pod)
  const areRunning = containers.length > 0 && containers.every(({ state }) => state?.running !== undefined)
  return areRunning && isTrue(podConditions.understudy)
}

/** True if the pod was made for memory. */
export const isForMemory = (pod: Pod): boolean => pod.metadata.annotations?.[memoryAnnotation] !== undefined

/** Only for pods made for memory: the owner of other pods may change their label. */
export const isRetired = (pod: Pod): boolean => kindLabelOf(pod) === retired && isForMemory(pod)

/** Facts about a pod from other sources than its own agent. */
export interface Seen {
  readonly unpublishedMs?: StageView['unpublishedMs']
  /** The agent of its node has stopped writing: no memory can be restored in the pod now. */
  readonly silent?: boolean
  /** Wall clock, ms. */
  readonly now?: number
  /** Returns since when the pod is not ready, as this process saw it; `told` is the time in the pod's condition. */
  readonly unreadySince?: (told: number | undefined) => number | undefined
}

/**
 * The kubelet publishes the agent's report within a second or so. A pod that is not Ready after this time is on a node
 * that Kubernetes has given up, ms: the conditions that its agent and kubelet wrote stay as they were.
 */
export const publishedMs = 5_000

/** True if the pod serves by the report of its agent, but Kubernetes sends no traffic to it. */
export const isUnpublished = ({ understudy, serving, selectable }: StageView): boolean =>
  understudy && serving && !selectable

/**
 * Returns the view of a pod of a set that keeps memory. Readiness means: a primary answers, an understudy holds its
 * place; a restart in the place of a dead app does not count.
 * @param summons the Lease that names this pod as the slot's primary.
 * @param failed why the pod did not come on stage when this process last called it.
 */
export function withStage<View extends Candidate>(
  pod: Pod,
  view: View,
  summons: NumberedSlotLease | undefined,
  failed: string | undefined,
  seen: Seen = {},
  stage: StageView = stageOf(pod),
): View {
  const label = kindLabelOf(pod)
  const isCalled = summons !== undefined && (label === 'hotbackup' || label === 'coldbackup')
  const ended = isCalled && stage.died ? 'its app has ended' : undefined
  const why = ended ?? stage.failed ?? (stage.serving ? undefined : failed)
  // If the agent has reported a reason, `failed` only repeats it, and the pod is not late.
  const isUntold = stage.failed === undefined
  // A pod that failed is a backup again, whatever the Lease still says: the slot looks for another one.
  const isSummoned = isCalled && why === undefined && stage.understudy
  const { unpublishedMs, silent = false, now = 0, unreadySince: firstSeen = told => told } = seen
  const isLost = unpublishedMs !== undefined && unpublishedMs > publishedMs
  const whole: StageView = {
    ...stage,
    ...{ unpublishedMs, failed: why, promoting: isSummoned },
    ...(isCalled && stage.understudy && isUntold && why !== undefined && why === failed && { late: true }),
  }
  const kind = isSummoned ? 'primary' : view.kind
  const ready = stage.understudy
    ? kind === 'primary'
      ? stage.serving && !isLost
      : holds(pod) && !silent
    : view.ready && !stage.died
  return {
    ...view,
    kind,
    ...(isSummoned && !view.waking ? { slot: summons.slot, epoch: summons.epoch } : {}),
    ready,
    unreadySince: ready
      ? undefined
      : stage.serving && isLost
        ? now - (unpublishedMs ?? 0)
        : stage.understudy || stage.died
          ? firstSeen(servingChangedAt(pod))
          : (view.unreadySince ?? view.createdAt),
    stage: whole,
  }
}

const servingChangedAt = (pod: Pod): number | undefined => {
  const since = Date.parse(conditionOf(pod, podConditions.serving)?.lastTransitionTime ?? '')
  return Number.isNaN(since) ? undefined : since
}

const conditionOf = (pod: Pod, type: string) =>
  pod.status?.conditions?.find(condition => condition.type === type)
