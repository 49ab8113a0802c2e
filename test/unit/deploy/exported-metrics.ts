import { Registry } from 'prom-client'
import { createAgentMetrics } from '../../../src/agent/report/metrics.ts'
import { createBudgetMetrics } from '../../../src/agent/storage/metrics.ts'
import { createSetMetrics } from '../../../src/backuppodset/metrics.ts'
import { createClonePodMetrics } from '../../../src/clonepod/metrics.ts'
import { createDrainMetrics } from '../../../src/drain/metrics.ts'
import { createMetrics } from '../../../src/kube/metrics.ts'
import { createMigratingPodMetrics } from '../../../src/migratingpod/metrics.ts'
import { createMigrationMetrics } from '../../../src/migration/metrics.ts'
import { createJobMetrics } from '../../../src/podmigrationjob/report/metrics.ts'
import { createPullMetrics } from '../../../src/slot/http-state/metrics.ts'
import { createStateStoreMetrics } from '../../../src/state-store/metrics.ts'
import { labelNamesOf } from '../../support/label-names.ts'

/** Returns labels and type, by name, of every metric that operator and agents export. */
export async function exported(): Promise<Map<string, { type: string; labels: readonly string[] }>> {
  const registries = [createMetrics().registry, new Registry()]
  createSetMetrics(registries[0] as Registry)
  createPullMetrics(registries[0] as Registry)
  createJobMetrics(registries[0] as Registry)
  createMigrationMetrics(registries[0] as Registry)
  createMigratingPodMetrics(registries[0] as Registry)
  createClonePodMetrics(registries[0] as Registry)
  createDrainMetrics(registries[0] as Registry)
  createStateStoreMetrics(registries[0] as Registry)
  createAgentMetrics(registries[1] as Registry, () => 0)
  createBudgetMetrics(registries[1] as Registry, { bytes: 0, budget: 0 }, undefined, () => undefined)
  return new Map(
    registries.flatMap(registry =>
      registry.getMetricsAsArray().map(metric => {
        return [metric.name, { type: String(metric.type), labels: labelNamesOf(metric) }] as const
      }),
    ),
  )
}
