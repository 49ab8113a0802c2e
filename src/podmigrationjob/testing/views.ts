import { parseJob } from '../../api/parse-pod-migration-job.ts'
import { podMigrationJobs } from '../../api/pod-migration-job.ts'
import { reservations } from '../../api/reservation.ts'
import type { JobView, PresentReservation, ReservedPod } from '../decide/view.ts'
import { podWith } from './worlds.ts'

/** The Reservation of that job, with a pod that is ready, but for a few differences. */
export const presentWith = (
  name: string,
  over: Partial<ReservedPod> = {},
  more: Partial<PresentReservation> = {},
): PresentReservation => ({
  ...{ type: 'present', resource: reservations, name, uid: 'r-uid', resourceVersion: '8' },
  ...{ isOwned: true, isTaken: false, isBound: over.isAdopted === true, failure: undefined },
  owner: { namespace: 'default', name: 'web-h', uid: undefined },
  pod: {
    ...{ uid: 'r', resourceVersion: '9', node: 'n2', unschedulable: undefined },
    ...{ isReady: true, isTerminating: false, isAdopted: false, isGated: false, nominated: undefined },
    ...over,
  },
  ...more,
})

/** A job for the pod `web-0`, with a few differences. */
export function viewWith(spec: object = {}, over: Partial<JobView> = {}): JobView {
  const metadata = { name: 'job', uid: 'job-uid', resourceVersion: '7' }
  const parsed = parseJob(
    { metadata, spec: { podRef: { namespace: 'default', name: 'web-0' }, ...spec } },
    { defaultJobTtlMs: 300_000, defaultJobMode: 'EvictDirectly' },
  )
  return {
    ...{ resource: podMigrationJobs, key: 'job', ...metadata, generation: 1, createdAt: 0, parsed },
    ...{ status: {}, seenForMs: 60_000, pod: podWith('web-0'), isRolling: false, hasUnready: false },
    eviction: 'none',
    live: { type: 'absent', seenForMs: 60_000 },
    reservation: { type: 'absent', seenForMs: 60_000 },
    ...{ preemptions: [], preemptor: undefined },
    ...over,
  }
}
