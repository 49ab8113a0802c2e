import { Counter, Histogram, type Registry } from 'prom-client'
import { metricName, setLabels, setLabelsOf } from '../../api/metrics.ts'
import type { PullFailure } from '../../checkpoint/http/transfer.ts'
import { createNamedSets, type NamedSets, type SetName } from '../report/named-sets.ts'

type PullOutcome = 'ok' | PullFailure

export interface PullMetrics {
  pulled(set: SetName, result: PullOutcome, seconds: number): void
  pushed(result: 'taken' | 'refused' | 'gone', seconds: number): void
  refreshed(result: 'taken' | 'failed' | 'no-room'): void
  /** The set no longer exists: removes its values. */
  forget(set: SetName): void
  /** Removes the values of individual sets: another process leads now, and this one no longer learns which sets end. */
  reset(): void
}

const outcomes: Readonly<Record<PullOutcome, true>> = {
  ok: true,
  PullFailed: true,
  StateTooLarge: true,
  StateBudgetExceeded: true,
}

/** @param named shared with other metrics that name sets. */
export function createPullMetrics(registry: Registry, named: NamedSets = createNamedSets()): PullMetrics {
  const registers = [registry]
  const pulls = new Counter({
    name: metricName('pulls_total'),
    help: 'Requests for the state of a primary (checkpoint.source http), by result: ok, PullFailed, StateTooLarge, StateBudgetExceeded.',
    labelNames: [...setLabels, 'result'],
    registers,
  })
  const pullSeconds = new Histogram({
    name: metricName('pull_duration_seconds'),
    help: 'Duration of requests for the state of a primary.',
    buckets: [0.001, 0.005, 0.02, 0.1, 0.5, 2, 5, 30],
    registers,
  })
  const pushes = new Histogram({
    name: metricName('push_duration_seconds'),
    help: 'Duration of giving a pulled state to a successor, its start included, by result: taken, refused, gone.',
    labelNames: ['result'],
    buckets: [0.005, 0.02, 0.1, 0.5, 1, 2, 5, 10, 30, 60],
    registers,
  })
  const refreshes = new Counter({
    name: metricName('refreshes_total'),
    help: 'States pushed to hot backups at each interval (checkpoint.http.push.everyInterval), by result: taken, failed, no-room.',
    labelNames: ['result'],
    registers,
  })
  return {
    pulled(set, result, seconds) {
      if (named.admit(set)) pulls.inc({ ...setLabelsOf(set), result })
      pullSeconds.observe(seconds)
    },
    pushed: (result, seconds) => pushes.observe({ result }, seconds),
    refreshed: result => refreshes.inc({ result }),
    forget(set) {
      named.forget(set)
      for (const result of Object.keys(outcomes)) pulls.remove({ ...setLabelsOf(set), result })
    },
    reset() {
      pulls.reset()
      named.clear()
    },
  }
}
