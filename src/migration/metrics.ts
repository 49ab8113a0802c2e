import { Counter, Gauge, Histogram, type Registry } from 'prom-client'
import { metricName } from '../api/metrics.ts'
import {
  isFinished,
  type Migration,
  type MigrationPhase,
  type MigrationStatus,
  migrationPhases,
  outcomeOf,
} from '../api/migration.ts'
import { isMigrationReason, migrationReasons } from '../api/migration-reasons.ts'
import { beganAt, finishedAt } from '../api/migration-times.ts'

export interface MigrationMetrics {
  /** This process has written the end of a Migration. `createdAt`: ms since the epoch. */
  ended(status: MigrationStatus, createdAt: number): void
}

/** The objects that the gauges show at a scrape. */
export interface MigrationGauges {
  /** Empty in a process that does not lead. */
  readonly migrations: readonly Migration[]
  /** Wall clock, ms since the epoch. */
  readonly now: number
}

const none = (): MigrationGauges => ({ migrations: [], now: 0 })

const openPhases: readonly MigrationPhase[] = migrationPhases.filter(
  phase => phase !== 'Succeeded' && phase !== 'Failed',
)

const minutes = [1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 900, 1_800, 3_600]

const instruments = (registers: Registry[]) => ({
  ended: new Counter({
    name: metricName('migrations_ended_total'),
    help: 'Migrations that have ended, by result (succeeded, failed) and reason.',
    labelNames: ['result', 'reason'],
    registers,
  }),
  duration: new Histogram({
    name: metricName('migration_duration_seconds'),
    help: 'From the creation of a Migration until its end, by result.',
    labelNames: ['result'],
    buckets: minutes,
    registers,
  }),
  phases: new Histogram({
    name: metricName('migration_phase_seconds'),
    help: 'Time that Migrations which succeeded were in each phase.',
    labelNames: ['phase'],
    buckets: [0.05, 0.1, 0.2, 0.5, ...minutes],
    registers,
  }),
  downtime: new Histogram({
    name: metricName('migration_downtime_seconds'),
    help: 'From the stop of a pod until its successor served, for Migrations that succeeded and were measured.',
    buckets: [0.05, 0.1, 0.2, 0.3, 0.5, 0.9, 1, 2, 5, 10, 30, 60],
    registers,
  }),
  predicted: new Histogram({
    name: metricName('migration_predicted_downtime_seconds'),
    help: 'The same by the prediction before the stop, for the same Migrations.',
    buckets: [0.05, 0.1, 0.2, 0.3, 0.5, 0.9, 1, 2, 5, 10, 30, 60],
    registers,
  }),
  bytes: new Histogram({
    name: metricName('migration_bytes'),
    help: 'Size of the last generation of pods that have moved.',
    buckets: [1e5, 1e6, 1e7, 1e8, 1e9, 1e10],
    registers,
  }),
})

/** @param gauges reads the present Migrations at each scrape. */
export function createMigrationMetrics(
  registry: Registry,
  gauges: () => MigrationGauges = none,
): MigrationMetrics {
  const registers = [registry]
  const { ended, duration, phases, downtime, predicted, bytes } = instruments(registers)
  // Initialised to 0: Prometheus sees no increase in a counter that first appears with its first failure.
  for (const reason of migrationReasons)
    ended.inc({ result: reason === 'Moved' ? 'succeeded' : 'failed', reason }, 0)
  addGauges(registers, gauges)
  return {
    ended(status, createdAt) {
      const isMoved = status.phase === 'Succeeded'
      const result = isMoved ? 'succeeded' : 'failed'
      const reason = outcomeOf({ status })?.reason
      ended.inc({ result, reason: isMigrationReason(reason) ? reason : 'InvalidValue' })
      const at = finishedAt(status)
      if (at !== undefined && createdAt > 0) duration.observe({ result }, Math.max(0, at - createdAt) / 1000)
      if (!isMoved) return
      for (const [phase, ms] of phaseLengths(status)) phases.observe({ phase }, ms / 1000)
      const { downtimeMilliseconds: measuredMs, predictedDowntimeMilliseconds: predictedMs } = status
      if (measuredMs !== undefined) downtime.observe(measuredMs / 1000)
      if (measuredMs !== undefined && predictedMs !== undefined) predicted.observe(predictedMs / 1000)
      if (status.bytes !== undefined) bytes.observe(status.bytes)
    },
  }
}

function addGauges(registers: Registry[], gauges: () => MigrationGauges): void {
  const open = () => gauges().migrations.filter(each => !isFinished(each))
  const phaseOf = ({ status }: Migration): MigrationPhase => status?.phase ?? 'Pending'
  new Gauge({
    name: metricName('migrations'),
    help: 'Migrations that have not ended, by phase.',
    labelNames: ['phase'],
    registers,
    collect() {
      this.reset()
      const byPhase = Map.groupBy(open(), phaseOf)
      for (const phase of openPhases) this.set({ phase }, byPhase.get(phase)?.length ?? 0)
    },
  })
  new Gauge({
    name: metricName('migrations_waiting'),
    help: 'Migrations that have not stopped their pod, by the reason for which they wait.',
    labelNames: ['reason'],
    registers,
    collect() {
      this.reset()
      for (const each of open()) {
        const reason = outcomeOf(each)?.reason
        if (isMigrationReason(reason) && reason !== 'Stopping' && reason !== 'Switching') this.inc({ reason })
      }
    },
  })
  new Gauge({
    name: metricName('migrations_oldest_seconds'),
    help: 'For how long the Migration that entered its phase first has been in it, by phase.',
    labelNames: ['phase'],
    registers,
    collect() {
      this.reset()
      const { migrations, now } = gauges()
      for (const [phase, all] of Map.groupBy(migrations, phaseOf)) {
        if (!openPhases.includes(phase)) continue
        const since = all.map(
          ({ status = {}, metadata }) =>
            beganAt(status, phase) ?? (Date.parse(metadata.creationTimestamp ?? '') || now),
        )
        this.set({ phase }, Math.max(0, now - since.reduce((a, b) => Math.min(a, b), now)) / 1000)
      }
    },
  })
}

/** Returns how long each phase lasted until the next one began, ms. Phases that were skipped are left out. */
function phaseLengths(status: MigrationStatus): readonly (readonly [MigrationPhase, number])[] {
  const times = migrationPhases.flatMap(phase => {
    const at = beganAt(status, phase)
    return at === undefined ? [] : [[phase, at] as const]
  })
  return times.flatMap(([phase, at], index) => {
    const next = times[index + 1]
    return next === undefined ? [] : [[phase, Math.max(0, next[1] - at)] as const]
  })
}
