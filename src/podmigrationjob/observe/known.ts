/** The jobs and Reservations that the operator serves: ours, and those of Koordinator's group where that is defined by us. */
import { koordinatorJobs, type PodMigrationJob, podMigrationJobs } from '../../api/pod-migration-job.ts'
import { koordinatorReservations, type Reservation, reservations } from '../../api/reservation.ts'
import type { Api } from '../../kube/api-types.ts'
import type { Cache } from '../../kube/cache-set.ts'
import type { Clock } from '../../kube/clock.ts'
import type { KubeObject } from '../../kube/object.ts'
import type { Queue } from '../../kube/queue.ts'
import { RetryLater } from '../../kube/reconcile.ts'
import type { Resource } from '../../kube/resources.ts'
import { createKoordinatorCheck, rememberedMs } from './koordinator.ts'

/** A job as the caches show it, or as this process has written it since. */
export interface KnownJob {
  readonly resource: Resource<PodMigrationJob>
  readonly job: PodMigrationJob
}

/** A Reservation as the caches show it. */
export interface KnownReservation {
  readonly resource: Resource<Reservation>
  readonly reservation: Reservation
}

/** Pause until a cache may have become complete, ms. */
const incompleteMs = 200

export interface KnownOptions {
  readonly api: Pick<Api, 'get'>
  readonly jobs: Cache<PodMigrationJob>
  readonly koordinatorJobs: Cache<PodMigrationJob>
  readonly reservations: Cache<Reservation>
  readonly koordinatorReservations: Cache<Reservation>
  readonly queue: Pick<Queue, 'add'>
  readonly clock: Pick<Clock, 'monotonic'>
}

export interface Known {
  readonly jobs: readonly KnownJob[]
  readonly reservations: readonly KnownReservation[]
}

/** Returns a function that reads the caches. @throws RetryLater as long as a cache that is needed is not complete. */
export function createKnown(options: KnownOptions): (signal: AbortSignal) => Promise<Known> {
  const { api, clock, queue } = options
  const isServed = {
    jobs: createKoordinatorCheck(koordinatorJobs, api, clock),
    reservations: createKoordinatorCheck(koordinatorReservations, api, clock),
  }
  const theirs = async <T extends KubeObject>(
    cache: Cache<T>,
    check: (signal: AbortSignal) => Promise<boolean>,
    signal: AbortSignal,
  ): Promise<readonly T[]> => {
    const is = (cache.size > 0 || !cache.hasSynced()) && (await check(signal))
    // Koordinator may be removed, and its kind be defined by us.
    if (!is && cache.size > 0) queue.add('all', { afterMs: rememberedMs })
    if (is && !cache.hasSynced())
      throw new RetryLater(incompleteMs, "a list of Koordinator's group is not complete yet")
    return is ? cache.list() : []
  }
  return async signal => {
    if (!options.jobs.hasSynced() || !options.reservations.hasSynced())
      throw new RetryLater(incompleteMs, 'the list of jobs, or of reservations, is not complete yet')
    const jobs = await theirs(options.koordinatorJobs, isServed.jobs, signal)
    const others = await theirs(options.koordinatorReservations, isServed.reservations, signal)
    const of = <T extends KubeObject>(resource: Resource<T>, objects: readonly T[]) =>
      objects.map(object => ({ resource, object }))
    return {
      jobs: [...of(podMigrationJobs, options.jobs.list()), ...of(koordinatorJobs, jobs)].map(
        ({ resource, object: job }) => ({ resource, job }),
      ),
      reservations: [
        ...of(reservations, options.reservations.list()),
        ...of(koordinatorReservations, others),
      ].map(({ resource, object: reservation }) => ({ resource, reservation })),
    }
  }
}
