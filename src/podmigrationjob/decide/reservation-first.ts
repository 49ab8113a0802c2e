/**
 * The mode `ReservationFirst`, after admission. A pod of the same template is made on another node. It holds its room as any pod does, so the
 * reservation is exact with every scheduler. When it is ready the workload adopts it, and deletes the other pod, which is one too many.
 */
import type { ParsedJob } from '../../api/parse-pod-migration-job.ts'
import { jobConditions, lowestDeletionCost } from '../../api/pod-migration-job.ts'
import { settlesMs } from './arbitrate.ts'
import { beforeAct, type Rules, refusedSince } from './before-act.ts'
import { evictReasons } from './evict-directly.ts'
import type { Action, JobView, ReservationFacts } from './view.ts'
import { conditionOf, failed, type Word } from './word.ts'

type Present = Extract<ReservationFacts, { type: 'present' }>

/** The name is the same after each restart, so that no job has two reservations. */
export const reservationNameOf = ({ uid }: Pick<JobView, 'uid'>): string => `reservation-${uid}`

export function reservationFirst(view: JobView, job: ParsedJob, isTimedOut: boolean, rules: Rules): Word {
  const { reservation: facts } = view
  if (facts.type === 'present' && isTheWorkloads(view, facts)) return adopted(view, job, isTimedOut, facts)
  return withItsCost(view, withoutAdoption(view, job, isTimedOut, rules))
}

function withoutAdoption(view: JobView, job: ParsedJob, isTimedOut: boolean, rules: Rules): Word {
  const { reservation: facts, pod } = view
  if (pod !== undefined && !(pod.owner.type === 'workload' && pod.owner.kind === 'Deployment'))
    return failed(
      'FailedCreateReservation',
      'only a Deployment can adopt a pod that was made for it: use the mode EvictDirectly, or Live for a BackupPodSet',
    )
  switch (facts.type) {
    case 'foreign':
      return failed('FailedCreateReservation', `another pod has the name ${reservationNameOf(view)}`)
    case 'absent':
      return withoutReservation(view, job, isTimedOut, { ...rules, absentForMs: facts.seenForMs })
    case 'present':
      return reserved(view, job, isTimedOut, { ...rules, facts })
    default:
      return facts satisfies never
  }
}

/** A pod that stays has the deletion cost of before again when the job ends: else its ReplicaSet would delete it first from then on. */
function withItsCost(view: JobView, word: Word): Word {
  const { pod, status, reservation } = view
  const isEnd = word.phase === 'Failed' || word.phase === 'Aborted'
  const wasAdopted = reservation.type !== 'absent' && status.podRef !== undefined
  const isLowered =
    conditionOf(status, jobConditions.eviction) !== undefined &&
    pod?.deletionCost === lowestDeletionCost &&
    status.source?.deletionCost !== lowestDeletionCost
  if (!isEnd || !isLowered || wasAdopted) return word
  const action = {
    type: 'restoreDeletionCost',
    view,
    pod,
    cost: status.source?.deletionCost,
    end: word,
  } as const
  return { ...releasing(word.message), action }
}

/** A workload that has had the replacement once has it for good: a pod that it has released since may still serve. */
const isTheWorkloads = ({ status }: Pick<JobView, 'status'>, { isAdopted, uid }: Present): boolean =>
  isAdopted || status.podRef?.uid === uid

function withoutReservation(
  view: JobView,
  job: ParsedJob,
  isTimedOut: boolean,
  { absentForMs, ...rules }: Rules & { readonly absentForMs: number },
): Word {
  const { pod, status } = view
  const { reservation } = status
  const isGone = reservation === undefined || reservation.uid !== undefined
  // The cache may not show yet that the last leader has created it.
  const isCertain = isGone || absentForMs >= settlesMs
  const end = endOf(view, job, isTimedOut, rules)
  if (end !== undefined) return isCertain ? end : releasing(end.message)
  if (pod === undefined) return failed('MissingPod', 'the pod is gone')
  if (reservation?.uid !== undefined)
    return failed('MissingReservation', 'the pod that was made for the job is gone; the other one stays')
  const waits = beforeAct(view, job, rules)
  if (waits !== undefined) return waits
  const name = reservationNameOf(view)
  const word: Word = {
    ...{ phase: 'Running', reason: 'Creating', message: `pod ${job.pod.namespace}/${name} is created` },
    condition: { type: jobConditions.reservationCreated, status: 'False' },
  }
  return reservation === undefined
    ? { ...word, more: { reservation: { name } } }
    : { ...word, action: { type: 'createReservation', view, pod, name } }
}

/** Returns how a job ends that can still turn back; undefined: it continues. */
function endOf(view: JobView, job: ParsedJob, isTimedOut: boolean, rules: Rules): Word | undefined {
  const { pod, status } = view
  if (pod === undefined || pod.isTerminating)
    return failed('MissingPod', 'the pod is gone, or is being deleted, and the job has not caused that')
  if (job.isAborted)
    return { phase: 'Aborted', reason: 'Aborted', message: 'the user has aborted the job; the pod stays' }
  if (!isTimedOut) return refusedSince(view, job, rules)
  const scheduled = conditionOf(status, jobConditions.reservationScheduled)
  return scheduled?.reason === 'Unschedulable'
    ? failed('Unschedulable', `no node took the replacement within the ttl: ${scheduled.message}`)
    : failed('Timeout', `the replacement was not ready within the ttl: ${status.message ?? ''}`)
}

const releasing = (why: string): Word => ({
  ...{ phase: 'Running', reason: 'Releasing', message: `the reservation is given up: ${why}` },
  condition: { type: jobConditions.reservationCreated, status: 'False' },
})

/** The replacement exists, and the workload does not have it yet. */
function reserved(
  view: JobView,
  job: ParsedJob,
  isTimedOut: boolean,
  { facts, ...rules }: Rules & { readonly facts: Present },
): Word {
  const { uid, node, unschedulable, isReady } = facts
  const name = reservationNameOf(view)
  const more = {
    reservation: { name, uid },
    ...(node !== undefined && { nodeName: node }),
  }
  const end = endOf(view, job, isTimedOut, rules)
  if (end !== undefined) {
    const action = giveUp(view)
    return { ...releasing(end.message), more, ...(action && { action }) }
  }
  if (node === undefined)
    return {
      ...{ phase: 'Running', reason: unschedulable === undefined ? 'Scheduling' : 'Unschedulable', more },
      message: unschedulable ?? `pod ${name} waits for the scheduler`,
      condition: { type: jobConditions.reservationScheduled, status: 'False' },
    }
  if (!isReady)
    return {
      ...{ phase: 'Running', reason: 'WaitForBoundPodReady', more },
      message: `pod ${name} is on node ${node}, and not ready yet`,
      condition: { type: jobConditions.boundPodReady, status: 'False' },
    }
  return beforeAct(view, job, rules) ?? toAdopt(view, more)
}

/** A ReplicaSet with one pod too many deletes a pod that is not ready before the cheapest pod. */
function toAdopt(view: JobView, more: NonNullable<Word['more']>): Word {
  const { pod, hasUnready } = view
  if (pod === undefined) return failed('MissingPod', 'the pod is gone')
  if (hasUnready)
    return {
      ...{ phase: 'Running', reason: 'WaitForWorkload', more },
      message: 'waits until all pods of the workload are ready',
    }
  const word: Word = {
    ...{ phase: 'Running', reason: evictReasons.coming, more },
    message: 'the workload adopts the replacement, and deletes the pod',
    condition: { type: jobConditions.eviction, status: 'False' },
  }
  const { source } = view.status
  const { deletionCost } = pod
  return conditionOf(view.status, jobConditions.eviction) === undefined
    ? {
        ...word,
        more: {
          ...more,
          ...(source && { source: { ...source, ...(deletionCost !== undefined && { deletionCost }) } }),
        },
      }
    : { ...word, action: { type: 'adopt', view, pod, name: reservationNameOf(view) } }
}

/** From the adoption on there is no way back. */
function adopted(view: JobView, job: ParsedJob, isTimedOut: boolean, { uid, node }: Present): Word {
  const name = reservationNameOf(view)
  const more = {
    ...{ reservation: { name, uid }, podRef: { namespace: job.pod.namespace, name, uid } },
    ...(node !== undefined && { nodeName: node }),
  }
  if (view.pod === undefined)
    return {
      ...{ phase: 'Succeed', reason: evictReasons.complete, more },
      message: `pod ${name} has replaced it`,
      condition: { type: jobConditions.eviction, status: 'True' },
    }
  if (isTimedOut)
    return {
      ...failed('Timeout', 'the workload has adopted the replacement, and has not deleted the pod'),
      more,
    }
  return {
    ...{ phase: 'Running', reason: evictReasons.evicting, more },
    message: 'the workload has adopted the replacement, and deletes the pod',
    condition: { type: jobConditions.eviction, status: 'False' },
  }
}

/** Deletes the replacement unless the workload has had it. Undefined: there is none, or it is too late. */
export function giveUp(view: JobView): Action | undefined {
  const { reservation: facts, parsed } = view
  if (facts.type !== 'present' || isTheWorkloads(view, facts) || !parsed.ok) return undefined
  const { uid, resourceVersion } = facts
  const { namespace } = parsed.job.pod
  return { type: 'deleteReservation', view, namespace, name: reservationNameOf(view), uid, resourceVersion }
}
