/** Writes of the status, and what this process knows about them before the caches do. */
import {
  isFinishedJob,
  type PodMigrationJob,
  type PodMigrationJobStatus,
} from '../../api/pod-migration-job.ts'
import { isFinishedReservation } from '../../api/reservation.ts'
import type { Api } from '../../kube/api-types.ts'
import { isKubeError } from '../../kube/errors.ts'
import { mergePatch } from '../../kube/merge-patch.ts'
import { parseResourceVersion } from '../../kube/object.ts'
import type { Resource } from '../../kube/resources.ts'
import type { JobView } from '../decide/view.ts'
import type { KnownJob, KnownReservation } from '../observe/known.ts'

export interface Writer {
  write(view: JobView, status: PodMigrationJobStatus, signal: AbortSignal): Promise<void>
  /**
   * Returns the jobs with the writes that the caches do not show yet. Without them a pass would admit more jobs than the budgets have
   * places for.
   */
  merged(jobs: readonly KnownJob[]): readonly KnownJob[]
  /** Reads the jobs whose last write may or may not have been executed. @throws KubeError */
  settle(signal: AbortSignal): Promise<void>
}

export function createWriter(api: Pick<Api, 'get' | 'patch'>): Writer {
  /** The newest known version of a job, by its uid. */
  const written = new Map<string, PodMigrationJob>()
  const open = new Map<string, { readonly resource: Resource<PodMigrationJob>; readonly name: string }>()
  const note = (job: PodMigrationJob) => written.set(job.metadata.uid, job)
  return {
    async write({ resource, name, uid, resourceVersion, status: previous }, status, signal) {
      // With the version that the decision is about: a job that has changed since is decided about again.
      const body = { metadata: { uid, resourceVersion }, status: mergePatch(previous, status) }
      open.set(uid, { resource, name })
      try {
        note(await api.patch(resource, { name }, { type: 'merge', body }, { subresource: 'status', signal }))
      } catch (error) {
        if (!isKubeError(error, 'NotFound', 'Conflict', 'Forbidden', 'Invalid')) throw error
        if (isKubeError(error, 'Forbidden', 'Invalid')) {
          open.delete(uid)
          throw error
        }
      }
      open.delete(uid)
    },
    merged(jobs) {
      const present = new Set(jobs.map(({ job }) => job.metadata.uid))
      for (const uid of written.keys()) if (!present.has(uid)) written.delete(uid)
      return jobs.map(known => {
        const { uid, resourceVersion } = known.job.metadata
        const mine = written.get(uid)
        if (mine === undefined) return known
        const isNewer =
          parseResourceVersion(mine.metadata.resourceVersion) > parseResourceVersion(resourceVersion)
        if (isNewer) return { ...known, job: mine }
        written.delete(uid)
        return known
      })
    },
    async settle(signal) {
      for (const [uid, { resource, name }] of open) {
        const job = await api.get(resource, { name }, { signal }).catch((error: unknown) => {
          if (isKubeError(error, 'NotFound')) return undefined
          throw error
        })
        if (job?.metadata.uid === uid) note(job)
        open.delete(uid)
      }
    },
  }
}

/** True while anything has not ended: then the world around it is followed. */
export const isAnyOpen = (jobs: readonly KnownJob[], reservations: readonly KnownReservation[]): boolean =>
  jobs.some(({ job }) => !isFinishedJob(job)) ||
  reservations.some(({ reservation }) => !isFinishedReservation(reservation))
