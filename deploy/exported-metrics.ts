/** The metrics that operator and agents export, as the code registers them. */
import { Registry } from 'prom-client'
import { createAgentMetrics } from '../src/agent/report/metrics.ts'
import { createBudgetMetrics } from '../src/agent/storage/metrics.ts'
import { metricName } from '../src/api/metrics.ts'
import { createSetMetrics } from '../src/backuppodset/metrics.ts'
import { createClonePodMetrics } from '../src/clonepod/metrics.ts'
import { createDrainMetrics } from '../src/drain/metrics.ts'
import { createBuildInfo } from '../src/kube/build-info.ts'
import { createMetrics } from '../src/kube/metrics.ts'
import { createMigratingPodMetrics } from '../src/migratingpod/metrics.ts'
import { createMigrationMetrics } from '../src/migration/metrics.ts'
import { createJobMetrics } from '../src/podmigrationjob/report/metrics.ts'
import { createPullMetrics } from '../src/slot/http-state/metrics.ts'
import { createStateStoreMetrics } from '../src/state-store/metrics.ts'
import { createTraceMetrics } from '../src/traces/metrics.ts'
import { labelNamesOf } from '../test/support/label-names.ts'

export interface Exported {
  readonly name: string
  readonly type: string
  readonly help: string
  readonly labels: readonly string[]
}

export const exporters = ['operator', 'agent'] as const
export type Exporter = (typeof exporters)[number]

const registriesOf: Readonly<Record<Exporter, (registry: Registry) => void>> = {
  operator(registry) {
    createSetMetrics(registry)
    createPullMetrics(registry)
    createJobMetrics(registry)
    createMigrationMetrics(registry)
    createMigratingPodMetrics(registry)
    createClonePodMetrics(registry)
    createDrainMetrics(registry)
    createStateStoreMetrics(registry)
    createTraceMetrics(registry)
  },
  agent(registry) {
    createAgentMetrics(registry)
    createBudgetMetrics(registry, { bytes: 0, budget: 0 }, undefined, () => undefined)
    createTraceMetrics(registry)
  },
}

/** Returns what one of the two exports, without the metrics of the controller kit and of the process. */
export function ownMetrics(component: Exporter): readonly Exported[] {
  const registry = new Registry()
  createBuildInfo(registry, metricName('build_info'), { component, version: '' })
  registriesOf[component](registry)
  return described(registry)
}

/** Returns the metrics that both have from the controller kit, and those of the process. */
export const kitMetrics = (): readonly Exported[] => described(createMetrics().registry)

const described = (registry: Registry): readonly Exported[] =>
  registry.getMetricsAsArray().map(metric => ({
    ...{ name: metric.name, type: String(metric.type), labels: labelNamesOf(metric) },
    help: 'help' in metric ? String(metric.help) : '',
  }))

/** Returns everything that a scrape of operator or agents may find, by name. */
export const exported = (): ReadonlyMap<string, Exported> =>
  new Map([...kitMetrics(), ...exporters.flatMap(ownMetrics)].map(metric => [metric.name, metric] as const))

/** Returns the table of docs/metrics.md. */
export function metricsTable(): string {
  const rows = exporters.flatMap(component =>
    ownMetrics(component)
      .toSorted((a, b) => (a.name < b.name ? -1 : 1))
      .map(
        ({ name, type, labels, help }) =>
          `| \`${name}\` | ${component} | ${type} | ${labels.map(label => `\`${label}\``).join(', ')} | ${help.replaceAll('|', '\\|')} |`,
      ),
  )
  return ['| name | of | type | labels | what |', '| --- | --- | --- | --- | --- |', ...rows].join('\n')
}
