import { Gauge, type Registry } from 'prom-client'
import { type ClonePod, clonePodPhases } from '../api/clone-pod.ts'
import { metricName } from '../api/metrics.ts'

/** @param objects the present ClonePods; empty in a process that does not lead. */
export function createClonePodMetrics(
  registry: Registry,
  objects: () => readonly ClonePod[] = () => [],
): void {
  new Gauge({
    name: metricName('clone_pods'),
    help: 'ClonePods by phase.',
    labelNames: ['phase'],
    registers: [registry],
    collect() {
      this.reset()
      const byPhase = Map.groupBy(objects(), ({ status }) => status?.phase ?? 'Pending')
      for (const phase of clonePodPhases) this.set({ phase }, byPhase.get(phase)?.length ?? 0)
    },
  })
}
