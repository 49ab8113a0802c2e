import { annotations, labels } from '../../api/labels.ts'
import type { SlotLease } from '../../api/slot-lease.ts'
import {
  containerIdsOf,
  isUnderstudy,
  memoryAnnotation,
  parseBroughtBack,
  podConditions,
  savedAnnotation,
  servingReasons,
  spoiledReason,
  successorAnnotation,
} from '../../api/stage.ts'
import type { Pod } from '../../kube/resources.ts'
import { natural } from '../pod/view.ts'
import type { PodView } from '../snapshot.ts'
import type { StageView } from './view.ts'

/** Reason of the condition `understudy` with which an agent says that a pod could not be brought on stage. */
export const restoreFailed = 'RestoreFailed'

/** What the conditions of a pod say of it; written by agents, so nothing of them is taken for granted. */
export function stageOf(pod: Pod): StageView {
  const { serving: isSaid, death } = servingOf(pod)
  const replaced = isSaid && isUnderstudy(pod) && runsAnother(pod)
  const serving = isSaid && !replaced
  // Of the others the kubelet's restart costs nothing that is kept.
  const saved = pod.metadata.annotations?.[savedAnnotation]?.split(',')
  const containers = (pod.status?.containerStatuses ?? []).filter(({ name }) => saved?.includes(name) ?? true)
  const understudy = conditionOf(pod, podConditions.understudy)
  const failed = understudy?.status === 'False' && understudy.reason === restoreFailed
  return {
    keeps: pod.metadata.annotations?.[memoryAnnotation] !== undefined,
    understudy: isUnderstudy(pod),
    successorOf: natural(pod.metadata.annotations?.[successorAnnotation]),
    died: death !== undefined,
    restarts: containers.reduce((sum, { restartCount }) => sum + restartCount, 0),
    containers: containerIdsOf(pod),
    replaced,
    serving,
    unpublishedMs: undefined,
    selectable: conditionOf(pod, 'Ready')?.status === 'True',
    summoned: false,
    spoiled: understudy?.status === 'False' && understudy.reason === spoiledReason,
    failed: failed && !serving ? (understudy.message ?? restoreFailed) : undefined,
    ip: pod.status?.podIP,
    handoverRequested: Boolean(pod.metadata.annotations?.[annotations.handoverRequested]),
    restoreHash: pod.metadata.labels?.[labels.restoreHash],
    memory: parseBroughtBack(conditionOf(pod, podConditions.serving)?.message ?? ''),
  }
}

/** Its agent has said which containers are on stage, and others are there now: they only hold it. */
function runsAnother(pod: Pod): boolean {
  const message = conditionOf(pod, podConditions.serving)?.message ?? ''
  const ids = containerIdsOf(pod)
    ?.split(',')
    .map(pair => pair.slice(pair.indexOf('=') + 1))
  return / is \S+:\/\//.test(message) && ids?.some(id => !message.includes(id)) === true
}

/** The reason `Died` is the agent's word that the app has ended and must not answer any more. */
export function servingOf(pod: Pod): { readonly serving: boolean; readonly death: string | undefined } {
  const condition = conditionOf(pod, podConditions.serving)
  const died = condition?.status === 'False' && condition.reason === servingReasons.died
  return {
    serving: condition?.status === 'True',
    death: died ? (condition.lastTransitionTime ?? 'unknown') : undefined,
  }
}

/** The containers of the pod run: an understudy holds the stage, whatever its readiness gate says. */
export const holds = (pod: Pod): boolean =>
  ['Ready', 'ContainersReady', podConditions.understudy].some(
    type => conditionOf(pod, type)?.status === 'True',
  )

/** The pod was made for memory, or an agent has spoken of it. */
export const isForMemory = (pod: Pod): boolean => pod.metadata.annotations?.[memoryAnnotation] !== undefined

/** Value of the label `type` of losers that have left the stage. No Service selects it, and no number counts it. */
export const retired = 'retired'

/** Only of pods made for memory: the label of others is their owner's to change. */
export const isRetired = (pod: Pod): boolean =>
  pod.metadata.labels?.[labels.type] === retired && isForMemory(pod)

/** What others than its own agent say of a pod. */
export interface Seen {
  readonly unpublishedMs?: StageView['unpublishedMs']
  /** The agent of its node writes no more: nothing can be brought on stage in it now. */
  readonly silent?: boolean
  /** Wall clock, ms. */
  readonly now?: number
  /** When it was first seen here that a pod is not ready since the time that is told of it. */
  readonly unreadySince?: (told: number | undefined) => number | undefined
}

/**
 * The kubelet publishes what the agent says within a second or so. What is not Ready after that is on a node that Kubernetes
 * has given up: the conditions that its agent and kubelet wrote stay as they were, ms.
 */
export const publishedMs = 5_000

/** It serves, as its agent has said, but Kubernetes does not lead anybody to it. */
export const isUnpublished = ({ understudy, serving, selectable }: StageView): boolean =>
  understudy && serving && !selectable

/**
 * The view of a pod of a set that keeps memory. Readiness means: a primary answers, an understudy holds the stage; a
 * restart in the place of a dead app means nothing.
 * @param summons the Lease that names this pod as its holder.
 * @param failed why it did not come on stage when this process last called it.
 */
export function withStage(
  pod: Pod,
  view: PodView,
  summons: SlotLease | undefined,
  failed: string | undefined,
  seen: Seen = {},
  stage: StageView = stageOf(pod),
): PodView {
  const label = pod.metadata.labels?.[labels.type]
  const isCalled = summons !== undefined && (label === 'hotbackup' || label === 'coldbackup')
  const ended = isCalled && stage.died ? 'its app has ended' : undefined
  const why = ended ?? stage.failed ?? (stage.serving ? undefined : failed)
  // Where its agent has said why, that is what this process has heard, in the same words.
  const isUntold = stage.failed === undefined
  // One that failed is a backup again, whatever the Lease still says: the slot looks for another one.
  const isSummoned = isCalled && why === undefined && stage.understudy
  const { unpublishedMs, silent = false, now = 0, unreadySince: firstSeen = told => told } = seen
  const isLost = unpublishedMs !== undefined && unpublishedMs > publishedMs
  const whole: StageView = {
    ...stage,
    ...{ unpublishedMs, failed: why, summoned: isSummoned },
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
