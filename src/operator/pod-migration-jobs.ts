import { koordinatorJobs, podMigrationJobs } from '../api/pod-migration-job.ts'
import { koordinatorReservations, reservations } from '../api/reservation.ts'
import type { Manager } from '../kube/manager.ts'
import { recordPhases } from '../phase-events/phase-events.ts'
import { jobSaid } from '../phase-events/said.ts'
import { createJobController } from '../podmigrationjob/controller.ts'
import { createJobMetrics } from '../podmigrationjob/report/metrics.ts'
import type { createCaches } from './caches.ts'
import type { OperatorOptions } from './options.ts'
import { phaseEventsOf } from './phase-events.ts'

/** Adds the controller of PodMigrationJobs to the work of the leader, if the operator has been started with it. */
export function leadJobs(
  manager: Manager,
  { namespace, podMigrationJobs: isWanted }: Pick<OperatorOptions, 'namespace' | 'podMigrationJobs'>,
  { sets, migrations }: Pick<ReturnType<typeof createCaches>['stores'], 'sets' | 'migrations'>,
): void {
  if (!isWanted) return
  const { clock, random, log, metrics } = manager
  // The kinds may be missing or forbidden, and then no job waits.
  const optional = { awaited: 'briefly', isNeeded: () => false } as const
  const ours = manager.cache(podMigrationJobs, optional)
  const theirs = manager.cache(koordinatorJobs, { awaited: 'not' })
  const events = phaseEventsOf(manager)
  recordPhases(events, podMigrationJobs, ours, jobSaid)
  recordPhases(events, koordinatorJobs, theirs, jobSaid)
  const controller = createJobController({
    ...{ sets, migrations, namespace, clock, random, log },
    api: manager.leaderApi,
    ...{ jobs: ours, koordinatorJobs: theirs },
    reservations: manager.cache(reservations, optional),
    koordinatorReservations: manager.cache(koordinatorReservations, { awaited: 'not' }),
    queue: manager.queue({ name: 'podmigrationjob', backoff: { initialMs: 100, maxMs: 10_000, jitter: 0 } }),
    metrics: createJobMetrics(metrics.registry),
    controllerMetrics: metrics.controller,
  })
  manager.leading(controller.run)
}
