/** Which jobs the operator has created for the pods that give way to others. */
import type { ParsedJobOrRefused } from '../../api/parse-pod-migration-job.ts'
import { type PodMigrationJob, podMigrationJobs } from '../../api/pod-migration-job.ts'
import { reservations } from '../../api/reservation.ts'
import { controllerOf } from '../../kube/owner.ts'
import { preemptionNameOf } from '../decide/preemption.ts'
import { type ReservationView, reservationKeyOf } from '../decide/reservation.ts'
import { reservationNameOf } from '../decide/reservation-name.ts'
import type { JobView, PreemptionFacts } from '../decide/view.ts'
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
  const byUid = new Map(jobs.map(({ known: { job } }) => [job.metadata.uid, job]))
  const children = new Map<string, PreemptionFacts[]>()
  for (const { known, parsed } of jobs) {
    const { metadata, status = {} } = known.job
    const owner = preemptorOf(metadata)
    if (owner === undefined || !parsed.ok || known.resource.group !== podMigrationJobs.group) continue
    const { pod } = parsed.job
    // Any other job with this owner was created by a user.
    if (
      metadata.name !== preemptionNameOf({ uid: owner }, { ...(pod.uid !== undefined && { uid: pod.uid }) })
    )
      continue
    const { uid } = metadata
    const reservation = views.get(reservationKeyOf(reservations, reservationNameOf({ uid })))?.status
    children.set(owner, [...(children.get(owner) ?? []), { job: uid, pod, status, reservation }])
  }
  return metadata => {
    const uid = preemptorOf(metadata)
    const { phase } = (uid === undefined ? undefined : byUid.get(uid)?.status) ?? {}
    return {
      preemptions: children.get(metadata.uid) ?? [],
      preemptor:
        uid === undefined ? undefined : { uid, hasGivenUp: phase === 'Failed' || phase === 'Aborted' },
    }
  }
}

function preemptorOf(metadata: PodMigrationJob['metadata']): string | undefined {
  const owner = controllerOf({ metadata })
  return owner?.kind === podMigrationJobs.kind ? owner.uid : undefined
}
