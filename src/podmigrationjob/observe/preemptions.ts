/** Which jobs the operator has created for the pods that give way to others. */
import type { ParsedJobOrRefused } from '../../api/parse-pod-migration-job.ts'
import { jobConditions, type PodMigrationJob, podMigrationJobs } from '../../api/pod-migration-job.ts'
import { reservations } from '../../api/reservation.ts'
import { controllerOf } from '../../kube/owner.ts'
import { preemptionNameOf } from '../decide/preemption.ts'
import { type ReservationView, reservationKeyOf } from '../decide/reservation.ts'
import { reservationNameOf } from '../decide/reservation-name.ts'
import type { JobView, PreemptionFacts, Preemptor } from '../decide/view.ts'
import { conditionOf } from '../decide/word.ts'
import type { KnownJob } from './known.ts'

interface Parsed {
  readonly known: KnownJob
  readonly parsed: ParsedJobOrRefused
}

type Relations = Pick<JobView, 'preemptions' | 'preemptor'>

/** Returns a function that gives the relations of one job. */
export function relationsOf(
  jobs: readonly Parsed[],
  views: ReadonlyMap<string, Pick<ReservationView, 'status'>>,
): (metadata: PodMigrationJob['metadata']) => Relations {
  const byUid = new Map(jobs.map(each => [each.known.job.metadata.uid, each]))
  const children = new Map<string, PreemptionFacts[]>()
  const preemptors = new Map<string, Preemptor>()
  for (const each of jobs) {
    const { metadata, status = {} } = each.known.job
    const owner = preemptorOf(each)
    if (owner === undefined || !each.parsed.ok) continue
    const { uid } = metadata
    const { pod } = each.parsed.job
    const reservation = views.get(reservationKeyOf(reservations, reservationNameOf({ uid })))?.status
    children.set(owner, [...(children.get(owner) ?? []), { job: uid, pod, status, reservation }])
    preemptors.set(uid, factsOf(byUid.get(owner), pod.uid))
  }
  return ({ uid }) => ({ preemptions: children.get(uid) ?? [], preemptor: preemptors.get(uid) })
}

/** The uid of the job for which the operator has created this one. Any other job with such an owner was created by a user. */
function preemptorOf({ known: { job, resource }, parsed }: Parsed): string | undefined {
  const { metadata } = job
  const owner = controllerOf({ metadata })
  if (owner?.kind !== podMigrationJobs.kind || !parsed.ok || resource.group !== podMigrationJobs.group)
    return undefined
  const { uid } = parsed.job.pod
  const name = preemptionNameOf(owner, { ...(uid !== undefined && { uid }) })
  return metadata.name === name ? owner.uid : undefined
}

/** A job that is deleted waits for no pod: the cache that has the other job had this one before. */
function factsOf(preemptor: Parsed | undefined, victim: string | undefined): Preemptor {
  const { status = {} } = preemptor?.known.job ?? {}
  const job = preemptor?.parsed.ok === true ? preemptor.parsed.job : undefined
  const isWaiting =
    job?.isAborted === false &&
    status.phase === 'Running' &&
    conditionOf(status, jobConditions.preemption)?.status === 'False' &&
    status.preemptedPodsRef?.some(({ uid }) => uid === victim) === true
  return { isOver: !isWaiting, isPaused: job?.isPaused === true, source: status.source?.uid }
}
