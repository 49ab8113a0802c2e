import { Gauge, type Registry } from 'prom-client'
import { metricName } from '../api/metrics.ts'
import { type MigratingPod, migratingPodStates } from '../api/migrating-pod.ts'

/** @param objects the present MigratingPods; empty in a process that does not lead. */
export function createMigratingPodMetrics(
  registry: Registry,
  objects: () => readonly MigratingPod[] = () => [],
): void {
  new Gauge({
    name: metricName('migrating_pods'),
    help: 'MigratingPods by state.',
    labelNames: ['state'],
    registers: [registry],
    collect() {
      this.reset()
      const byState = Map.groupBy(objects(), ({ status }) => status?.state ?? 'Creating')
      for (const state of migratingPodStates) this.set({ state }, byState.get(state)?.length ?? 0)
    },
  })
}
