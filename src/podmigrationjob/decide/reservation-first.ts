/**
 * The mode `ReservationFirst`, after admission. A Reservation has a pod of the same template made on another node. The pod holds its room as any
 * pod does, so the reservation is exact with every scheduler. When it is ready the workload adopts it, and deletes the other pod, which is one too
 * many.
 */
import type { ParsedJob } from '../../api/parse-pod-migration-job.ts'
import { jobConditions, lowestDeletionCost } from '../../api/pod-migration-job.ts'
import { reservations } from '../../api/reservation.ts'
import { adopted, isTrue, toAdopt } from './adoption.ts'
import { settlesMs } from './arbitrate.ts'
import { beforeAct, type Rules, refusedSince } from './before-act.ts'
import { preemptionEnded, preemptionReport, unscheduled } from './preemption.ts'
import { reservationNameOf } from './reservation-name.ts'
import type { Action, JobView, PresentReservation } from './view.ts'
import { aborted, conditionOf, failed, type Word } from './word.ts'

/** The operator creates it for this job. */
export const isOwnReservation = (view: Pick<JobView, 'uid'>, { reservationRef }: ParsedJob): boolean =>
  reservationRef === undefined ||
  (reservationRef.group === reservations.group && reservationRef.name === reservationNameOf(view))

export function reservationFirst(view: JobView, job: ParsedJob, isTimedOut: boolean, rules: Rules): Word {
  const word = withItsNode(view, toReplace(view, job, isTimedOut, rules))
  return { ...word, more: { ...preemptionReport(view), ...word.more } }
}

function toReplace(view: JobView, job: ParsedJob, isTimedOut: boolean, rules: Rules): Word {
  const { reservation: facts, status } = view
  const uid = facts.type === 'present' ? facts.pod?.uid : undefined
  // The workload has the pod, whatever has become of its Reservation.
  if (facts.type === 'absent' && status.podRef?.uid !== undefined)
    return adopted(view, job, isTimedOut, {
      ...{ uid: status.podRef.uid, node: status.nodeName, isBound: true, ...rules },
    })
  if (facts.type === 'present' && uid !== undefined && isTheWorkloads(view, facts)) {
    const { isBound, pod } = facts
    const word = adopted(view, job, isTimedOut, { ...rules, uid, node: pod?.node, isBound })
    // The workload keeps both pods, such as one that was scaled up in that moment.
    return word.phase === 'Failed' ? restored(view, word) : word
  }
  return withItsCost(view, withoutAdoption(view, job, isTimedOut, rules))
}

/** A job whose pod had no node when it began says whether the pod has one now. */
function withItsNode({ status, pod }: JobView, word: Word): Word {
  const type = jobConditions.podScheduled
  if (pod === undefined || (status.source?.nodeName !== undefined && !conditionOf(status, type))) return word
  const { node } = pod
  const condition =
    node === undefined
      ? ({ status: 'False', reason: 'Unschedulable', message: 'the pod has no node' } as const)
      : ({ status: 'True', reason: 'Scheduled', message: `the pod is on node ${node}` } as const)
  return { ...word, also: [...(word.also ?? []), { type, ...condition }] }
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
      return failed('FailedCreateReservation', `another Reservation has the name ${reservationNameOf(view)}`)
    case 'absent':
      return withoutReservation(view, job, isTimedOut, { ...rules, absentForMs: facts.seenForMs })
    case 'present':
      return reserved(view, job, isTimedOut, { ...rules, facts })
    default:
      return facts satisfies never
  }
}

/** A job whose pod the workload has adopted once is over only when the other pod goes, or the ttl is over. */
function withItsCost(view: JobView, word: Word): Word {
  const { status, reservation } = view
  const isEnd = word.phase === 'Failed' || word.phase === 'Aborted'
  const wasAdopted = reservation.type !== 'absent' && status.podRef !== undefined
  return !isEnd || wasAdopted ? word : restored(view, word)
}

/** A pod that stays has the deletion cost of before again when the job ends: else its ReplicaSet would delete it first from then on. */
function restored(view: JobView, end: Word): Word {
  const { pod, status } = view
  const isLowered =
    conditionOf(status, jobConditions.eviction) !== undefined &&
    pod?.deletionCost === lowestDeletionCost &&
    !pod.isTerminating &&
    status.source?.deletionCost !== lowestDeletionCost
  if (!isLowered) return end
  const action = { type: 'restoreDeletionCost', view, pod, cost: status.source?.deletionCost, end } as const
  return {
    ...{ phase: 'Running', reason: 'Releasing', action },
    message: `the pod gets its deletion cost of before again: ${end.message}`,
  }
}

/**
 * A workload that has had the replacement once has it for good: a pod that it has released since may still serve. The pod of a Reservation that is
 * not the job's own may have been adopted for another job: this one has announced its adoption if it was for it.
 */
const isTheWorkloads = (
  { status }: Pick<JobView, 'status'>,
  { pod, isOwned, isTaken }: PresentReservation,
): boolean => {
  const isAnnounced = !isTaken && conditionOf(status, jobConditions.eviction) !== undefined
  return pod !== undefined && (status.podRef?.uid === pod.uid || (pod.isAdopted && (isOwned || isAnnounced)))
}

function withoutReservation(
  view: JobView,
  job: ParsedJob,
  isTimedOut: boolean,
  { absentForMs, ...rules }: Rules & { readonly absentForMs: number },
): Word {
  const { pod, status } = view
  const { reservation } = status
  const isOwn = isOwnReservation(view, job)
  const isGone = !isOwn || reservation === undefined || reservation.uid !== undefined
  // The cache may not show yet that the last leader has created it.
  const isCertain = isGone || absentForMs >= settlesMs
  const end = endOf(view, job, isTimedOut, rules)
  if (end !== undefined) return isCertain ? end : releasing(end.message)
  if (pod === undefined) return failed('MissingPod', 'the pod is gone')
  if (!isOwn || reservation?.uid !== undefined) {
    const missing = failed(
      'MissingReservation',
      'there is no such Reservation any more, or not yet; the pod stays',
    )
    // A cache that is read again may be behind for a moment.
    return absentForMs >= settlesMs ? missing : { ...missing, phase: 'Running' }
  }
  const waits = beforeAct(view, job, rules)
  if (waits !== undefined) return waits
  const name = reservationNameOf(view)
  const word = creating(`Reservation ${name} is created`)
  return reservation === undefined
    ? { ...word, more: { reservation: { name } } }
    : { ...word, action: { type: 'createReservation', view, pod } }
}

const creating = (message: string): Word => ({
  ...{ phase: 'Running', reason: 'Creating', message },
  condition: { type: jobConditions.reservationCreated, status: 'False' },
})

/** Returns how a job ends that can still turn back; undefined: it continues. */
function endOf(view: JobView, job: ParsedJob, isTimedOut: boolean, rules: Rules): Word | undefined {
  const { pod, status } = view
  if (pod === undefined || pod.isTerminating)
    return failed('MissingPod', 'the pod is gone, or is being deleted, and the job has not caused that')
  if (job.isAborted) return aborted(view, '; the pod stays')
  if (!isTimedOut) return refusedSince(view, job, rules)
  const scheduled = conditionOf(status, jobConditions.reservationScheduled)
  return scheduled?.reason === 'Unschedulable' && scheduled.status === 'False'
    ? failed('Unschedulable', `no node took the replacement within the ttl: ${scheduled.message}`)
    : failed('Timeout', `the replacement was not ready within the ttl: ${status.message ?? ''}`)
}

const releasing = (why: string): Word => ({
  ...{ phase: 'Running', reason: 'Releasing', message: `the reservation is given up: ${why}` },
  condition: { type: jobConditions.reservationCreated, status: 'False' },
})

/** The Reservation exists, and the workload does not have its pod yet. */
function reserved(
  view: JobView,
  job: ParsedJob,
  isTimedOut: boolean,
  { facts, ...rules }: Rules & { readonly facts: PresentReservation },
): Word {
  const { name, uid, failure, isOwned, isTaken, pod: replacement } = facts
  const { status } = view
  const node = replacement?.node
  const more = { reservation: { name, uid }, ...(node !== undefined && { nodeName: node }) }
  const end = endOf(view, job, isTimedOut, rules) ?? unusable(view, facts)
  if (end !== undefined) {
    const action = giveUp(view)
    // A Reservation that has failed says why: the job says the same, and its Reservation goes with it.
    return action === undefined || failure !== undefined ? end : { ...releasing(end.message), more, action }
  }
  if (job.reservationRef === undefined)
    return {
      ...creating(`the job refers to Reservation ${name}`),
      more,
      action: { type: 'referTo', view, reservation: facts },
    }
  const created = isTrue(jobConditions.reservationCreated, 'ReservationCreated', `Reservation ${name} exists`)
  if (isTaken && !isOwned)
    return {
      ...{ phase: 'Running', reason: 'WaitForReservation', also: [created], more },
      message: `another job uses Reservation ${name}`,
    }
  if (replacement === undefined || node === undefined) {
    const word = unscheduled(view, job, { ...rules, facts })
    const failure = word.phase === 'Failed' ? giveUp(view) : undefined
    return failure === undefined
      ? { ...word, also: [created, ...(word.also ?? [])], more: { ...more, ...word.more } }
      : { ...releasing(word.message), more, action: failure }
  }
  const scheduled = isTrue(jobConditions.reservationScheduled, 'Scheduled', `pod ${name} is on node ${node}`)
  const before = [created, scheduled, ...preemptionEnded(status, node)]
  if (!replacement.isReady)
    return {
      ...{ phase: 'Running', reason: 'WaitForBoundPodReady', also: before, more },
      message: `pod ${name} is on node ${node}, and not ready yet`,
      condition: { type: jobConditions.boundPodReady, status: 'False' },
    }
  const ready = isTrue(jobConditions.boundPodReady, 'Ready', `pod ${name} is ready`)
  const held = beforeAct(view, job, rules)
  const word = held === undefined ? toAdopt(view, facts, replacement) : held
  return { ...word, also: [...before, ready, ...(word.also ?? [])], more: { ...more, ...word.more } }
}

/** Returns how the job ends because its Reservation holds no room that it can use. */
function unusable({ pod }: JobView, { failure, isOwned, pod: replacement, name }: PresentReservation) {
  if (failure !== undefined)
    return failed(reasonOf(failure.reason), `Reservation ${name}: ${failure.message}`)
  if (replacement?.isAdopted === true)
    return failed('InvalidReservation', `a workload has the pod of Reservation ${name} already`)
  // The scheduler keeps the operator's own Reservations away from that node.
  if (!isOwned && replacement?.node !== undefined && replacement.node === pod?.node)
    return failed(
      'ForbiddenMigratePod',
      `Reservation ${name} is on the node of the pod: choose another Reservation`,
    )
  return undefined
}

function reasonOf(failure: string): string {
  if (failure === 'Expired') return 'ReservationExpired'
  return failure === 'PodDeleted' ? 'MissingReservation' : failure
}

/** Deletes the Reservation with its pod unless the workload has had that. Undefined: there is none of the job, or it is too late. */
export function giveUp(view: JobView): Action | undefined {
  const { reservation } = view
  return reservation.type !== 'present' || !reservation.isOwned || isTheWorkloads(view, reservation)
    ? undefined
    : { type: 'deleteReservation', view, reservation }
}
