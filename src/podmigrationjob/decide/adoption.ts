/** The end of the mode `ReservationFirst`: the workload adopts the replacement, and deletes the pod that is one too many. */
import type { ParsedJob } from '../../api/parse-pod-migration-job.ts'
import { jobConditions } from '../../api/pod-migration-job.ts'
import type { Rules } from './before-act.ts'
import { evictReasons } from './evict-directly.ts'
import type { JobView, PresentReservation, ReservedPod } from './view.ts'
import { conditionOf, failed, type Word } from './word.ts'

export const isTrue = (type: string, reason: string, message: string) =>
  ({ type, status: 'True', reason, message }) as const

const waitsForBind = (message: string) => ({ reason: 'WaitForPodBindReservation', message }) as const

/** A ReplicaSet with one pod too many deletes a pod that is not ready before the cheapest pod. */
export function toAdopt(view: JobView, reservation: PresentReservation, replacement: ReservedPod): Word {
  const { pod, hasUnready } = view
  if (pod === undefined) return failed('MissingPod', 'the pod is gone')
  if (hasUnready)
    return {
      ...{ phase: 'Running', reason: 'WaitForWorkload' },
      message: 'waits until all pods of the workload are ready',
    }
  const wait = { status: 'False', ...waitsForBind('the workload adopts the pod') } as const
  const word: Word = {
    ...{ phase: 'Running', reason: evictReasons.coming },
    message: 'the workload adopts the replacement, and deletes the pod',
    condition: { type: jobConditions.eviction, status: 'False' },
    also: [
      { type: jobConditions.podBound, ...wait },
      { type: jobConditions.reservationBound, ...wait },
    ],
  }
  const { source } = view.status
  const { deletionCost } = pod
  return conditionOf(view.status, jobConditions.eviction) === undefined
    ? {
        ...word,
        more: source ? { source: { ...source, ...(deletionCost !== undefined && { deletionCost }) } } : {},
      }
    : { ...word, action: { type: 'adopt', view, pod, reservation, replacement } }
}

interface Adopted extends Rules {
  readonly uid: string
  readonly node: string | undefined
  /** The Reservation says so, too. */
  readonly isBound: boolean
}

/** From the adoption on there is no way back. */
export function adopted(
  view: JobView,
  job: ParsedJob,
  isTimedOut: boolean,
  { uid, node, isBound, config }: Adopted,
): Word {
  const { pod, reservation: facts, status } = view
  const name =
    status.podRef?.name ?? (facts.type === 'present' ? facts.name : (status.reservation?.name ?? ''))
  const more = {
    ...(facts.type === 'present' && { reservation: { name, uid: facts.uid } }),
    podRef: { namespace: job.pod.namespace, name, uid },
    ...(node !== undefined && { nodeName: node }),
  }
  const bound = isTrue(jobConditions.podBound, 'Adopted', `the workload has pod ${name}`)
  const unbound = { status: 'False', ...waitsForBind('the Reservation does not say so yet') } as const
  const also = [bound, { ...(isBound ? bound : unbound), type: jobConditions.reservationBound }]
  if (pod === undefined && (isBound || isTimedOut))
    return {
      ...{ phase: 'Succeed', reason: evictReasons.complete, also, more },
      message: `pod ${name} has replaced it`,
      condition: { type: jobConditions.eviction, status: 'True' },
    }
  if (isTimedOut && pod !== undefined)
    return {
      ...failed('Timeout', 'the workload has adopted the replacement, and has not deleted the pod'),
      ...{ also, more },
    }
  const word: Word = {
    ...{ phase: 'Running', reason: evictReasons.evicting, also, more },
    message: 'the workload has adopted the replacement, and deletes the pod',
    condition: { type: jobConditions.eviction, status: 'False' },
  }
  const given = config.ok ? (job.deleteOptions ?? config.args.defaultDeleteOptions) : job.deleteOptions
  const graceSeconds = given?.gracePeriodSeconds
  // The ReplicaSet deletes it with the grace period of the pod. A later request can only shorten it.
  // A pod that is not deleted yet may be one that it keeps.
  const isLong =
    pod?.isTerminating === true && (pod.graceSeconds ?? 0) > (graceSeconds ?? Number.POSITIVE_INFINITY)
  return isLong ? { ...word, action: { type: 'shorten', view, pod } } : word
}
