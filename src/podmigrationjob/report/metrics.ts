import { Counter, Gauge, type Registry } from 'prom-client'
import { metricName } from '../../api/metrics.ts'
import { type JobPhase, jobPhases } from '../../api/pod-migration-job.ts'

export interface JobMetrics {
  /** Numbers of jobs, and of those that wait by their reasons. */
  jobs(byPhase: ReadonlyMap<JobPhase, number>, waiting: ReadonlyMap<string, number>): void
  /** An answer to a request for an eviction. */
  eviction(result: 'accepted' | 'refused' | 'failed'): void
  /** Seconds that one arbitration took. */
  arbitrated(seconds: number): void
}

export function createJobMetrics(registry: Registry): JobMetrics {
  const registers = [registry]
  const jobs = new Gauge({
    name: metricName('pod_migration_jobs'),
    help: 'PodMigrationJobs by phase.',
    labelNames: ['phase'],
    registers,
  })
  const waiting = new Gauge({
    name: metricName('pod_migration_jobs_waiting'),
    help: 'PodMigrationJobs that wait, by the budget or rule for which they wait.',
    labelNames: ['reason'],
    registers,
  })
  const evictions = new Counter({
    name: metricName('pod_migration_evictions_total'),
    help: 'Evictions that were requested for PodMigrationJobs, by their answer.',
    labelNames: ['result'],
    registers,
  })
  const duration = new Gauge({
    name: metricName('pod_migration_arbitration_seconds'),
    help: 'Time of the last arbitration of all PodMigrationJobs.',
    registers,
  })
  return {
    jobs(byPhase, byReason) {
      for (const phase of jobPhases) jobs.set({ phase }, byPhase.get(phase) ?? 0)
      waiting.reset()
      for (const [reason, count] of byReason) waiting.set({ reason }, count)
    },
    eviction: result => evictions.inc({ result }),
    arbitrated: seconds => duration.set(seconds),
  }
}
