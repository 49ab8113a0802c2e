/** The primary that a slot's Lease names, as far as its pod tells. */

import type { NumberedSlotLease } from '../../api/numbered-slot.ts'
import { kindLabelOf } from '../../api/pod-kind.ts'
import type { Clock } from '../../kube/clock.ts'
import type { Pod } from '../../kube/resources.ts'
import { outOfReachMs, watchLagMs } from '../decide/deadlines.ts'
import type { StageView } from '../decide/memory-view.ts'
import { isFinished } from './candidate.ts'
import type { Reports } from './reports.ts'
import type { Since } from './since.ts'

/**
 * Time after which a pod that is being deleted has been killed, counted from the end of its grace period: its node may
 * report the end late, ms. Both times count from when this process first saw the deletion, because the deletion's own
 * timestamp is by the clock of the API server.
 */
const afterGraceMs = 2_000

/** The grace period if the API server reports none, seconds. */
const usualGrace = 30

interface PrimaryDeps {
  readonly clock: Clock
  readonly reports: Pick<Reports, 'silentFor'>
  /** True for a pod whose deletion the API server has accepted from us. */
  readonly isDeleted: (uid: string) => boolean
}

/**
 * Returns which containers of the primary are others than those whose memory this incarnation is. Container ids tell; if a
 * Lease has none, the restart counter tells that of any.
 */
export function replacedIn(
  pod: Pod | undefined,
  stage: StageView | undefined,
  lease: NumberedSlotLease,
  restarts: number | undefined,
): StageView['replaced'] {
  if (pod === undefined || stage === undefined) return 'No'
  if (pod.metadata.deletionTimestamp !== undefined || isFinished(pod)) return 'No'
  // In an understudy the containers are older than the app in them: its agent reports in which containers it was
  // restored.
  if (stage.understudy) return stage.replaced
  const present = stage.containers?.split(',')
  if (lease.containers !== undefined) {
    if (present === undefined || stage.containers === lease.containers) return 'No'
    const before = lease.containers.split(',')
    return present.some(each => before.includes(each)) ? 'Partly' : 'Wholly'
  }
  if (restarts === undefined || stage.restarts <= restarts) return 'No'
  return present?.length === 1 ? 'Wholly' : 'Partly'
}

/** True if the pod continues with the memory of its slot, as far as its conditions say. */
export function isOnStage(
  pod: Pod | undefined,
  stage: StageView | undefined,
  { isDeleted }: Pick<PrimaryDeps, 'isDeleted'>,
): boolean {
  if (pod === undefined || stage === undefined) return false
  if (isFinished(pod) || isDeleted(pod.metadata.uid)) return false
  const { understudy, serving, died } = stage
  return pod.metadata.deletionTimestamp === undefined && !died && (!understudy || serving)
}

/**
 * Returns until when to wait for the report that a primary which is being deleted has stopped, monotonic ms. Its grace
 * period begins when its kubelet hears of the deletion. A silent node may be cut off, and may have lagged before that: so the
 * grace period counts from the first report of its agent that is too late to have missed the deletion. Without one Kubernetes
 * decides, by making the node's pods unready, or the voters of the primary do.
 */
export function goesBy(
  pod: Pod | undefined,
  stage: StageView | undefined,
  { isDeleted, clock, reports }: PrimaryDeps,
  since: ReturnType<Since['pass']>,
): number | undefined {
  if (pod === undefined || stage === undefined || isFinished(pod) || stage.died) return undefined
  // A pod that was called and does not resume, such as a cold backup whose gate stayed silent, has no app to stop first.
  const { understudy, serving, resuming } = stage
  if (understudy && !serving && !resuming && kindLabelOf(pod) !== 'primary') return undefined
  const { deletionTimestamp, deletionGracePeriodSeconds: grace = usualGrace, uid } = pod.metadata
  const node = pod.spec?.nodeName
  const now = clock.monotonic()
  // A client may shorten the grace period later: the kubelet hears of that when we do.
  const at = since(`going/${uid}/${grace}`, deletionTimestamp !== undefined)
  if (at === undefined) return isDeleted(uid) ? now + afterGraceMs : undefined
  const lastsMs = grace * 1000 + afterGraceMs
  const hasHeard = node !== undefined && reports.silentFor(node) < now - at - watchLagMs
  const heardAt = since(`heard/${uid}/${grace}`, hasHeard)
  // An understudy that resumes has not been ready yet.
  if ((!stage.selectable && !resuming) || node === undefined) return at + lastsMs
  return heardAt === undefined ? Math.max(at + lastsMs, now + afterGraceMs) : heardAt + lastsMs
}

/**
 * Returns until when to wait for the agent to report that it has ended a primary whose pod is gone, monotonic ms. A pod that
 * was deleted by force may still run: its node may have been cut off a moment before. Until its voters have made sure, only
 * its agent can tell. An agent that still writes at the end must have seen the deletion, even if its version does not
 * report that.
 */
export function goneBy(
  { holder, incarnation, fence }: NumberedSlotLease,
  ended: string | undefined,
  since: ReturnType<Since['pass']>,
): number | undefined {
  const isOpen = fence?.isArmed === true && ended !== holder.uid
  const at = since(`gone/${incarnation}/${holder.uid}`, isOpen)
  return at === undefined ? undefined : at + outOfReachMs
}
