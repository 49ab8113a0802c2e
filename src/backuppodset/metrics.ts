import { Counter, Gauge, Histogram, type Registry } from 'prom-client'
import type { BackupPodSetStatus } from '../api/backuppodset.ts'
import type { Outcome } from './act/outcome.ts'

/** What the controller tells about sets beyond the loop's own metrics. */
export interface SetMetrics {
  acted(outcomes: readonly Outcome[], monotonicNow: number): void
  woke(result: 'opened' | 'failed', seconds: number): void
  counted(set: { namespace: string; name: string }, status: BackupPodSetStatus): void
  forget(set: { namespace: string; name: string }): void
}

export function createSetMetrics(registry: Registry): SetMetrics {
  const registers = [registry]
  const actions = new Counter({
    name: 'backuppodset_actions_total',
    help: 'Actions on pods by type (create, convert, rewake, delete, adopt, release) and result.',
    labelNames: ['type', 'result'],
    registers,
  })
  const failovers = new Histogram({
    name: 'backuppodset_failover_duration_seconds',
    help: 'From the first sight of a lost primary to the accepted write that put its successor on stage.',
    labelNames: ['reason'],
    buckets: [0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30],
    registers,
  })
  const wakes = new Histogram({
    name: 'backuppodset_wake_duration_seconds',
    help: 'Waking of a cold backup: waiting for its gate, connection and answer.',
    labelNames: ['result'],
    buckets: [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.5, 1, 5, 30],
    registers,
  })
  const pods = new Gauge({
    name: 'backuppodset_pods',
    help: 'Live pods of a set by kind.',
    labelNames: ['namespace', 'name', 'kind'],
    registers,
  })
  const ready = new Gauge({
    name: 'backuppodset_pods_ready',
    help: 'Pods of a set that can do what their kind is for: ready primaries and hot backups, gated cold backups.',
    labelNames: ['namespace', 'name', 'kind'],
    registers,
  })
  return {
    acted(outcomes, monotonicNow) {
      for (const outcome of outcomes) {
        actions.inc({ type: outcome.action.type, result: outcome.type })
        if (outcome.type !== 'done' || outcome.action.type === 'rewake') continue
        const role = 'role' in outcome.action ? outcome.action.role : undefined
        if (role?.replaces && role.replaces.reason !== 'Replaced')
          failovers.observe({ reason: role.replaces.reason }, (monotonicNow - role.replaces.seenAt) / 1000)
      }
    },
    woke: (result, seconds) => wakes.observe({ result }, seconds),
    counted({ namespace, name }, status) {
      for (const [kind, count, usable] of [
        ['primary', status.replicas, status.readyReplicas],
        ['hotbackup', status.hotbackups, status.readyHotbackups],
        ['coldbackup', status.coldbackups, status.gatedColdbackups],
      ] as const) {
        pods.set({ namespace, name, kind }, count ?? 0)
        ready.set({ namespace, name, kind }, usable ?? 0)
      }
    },
    forget({ namespace, name }) {
      for (const kind of ['primary', 'hotbackup', 'coldbackup']) {
        pods.remove({ namespace, name, kind })
        ready.remove({ namespace, name, kind })
      }
    },
  }
}
