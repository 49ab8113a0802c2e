import { clonePods as clonePodResource } from '../api/clone-pod.ts'
import type { MigratingPod } from '../api/migrating-pod.ts'
import { reconcile } from '../clonepod/controller.ts'
import { createClonePodMetrics } from '../clonepod/metrics.ts'
import { clonePodIndexes } from '../clonepod/observe.ts'
import type { Cache } from '../kube/cache-set.ts'
import type { Manager } from '../kube/manager.ts'
import { watch } from '../kube/manager-types.ts'
import { controllersIn } from '../kube/owner.ts'
import { recordPhases } from '../phase-events/phase-events.ts'
import { clonePodSaid } from '../phase-events/said.ts'
import type { createCaches } from './caches.ts'
import type { OperatorOptions } from './options.ts'
import { phaseEventsOf } from './phase-events.ts'

/** Adds the controller of ClonePods to the work of the leader, if the operator has been started with it. */
export function leadClonePods(
  manager: Manager,
  { clonePods: isWanted }: Pick<OperatorOptions, 'clonePods'>,
  { sets, pods }: Pick<ReturnType<typeof createCaches>['stores'], 'sets' | 'pods'>,
  migratingPods: Cache<MigratingPod>,
): void {
  if (!isWanted) return
  // The kind may be missing or forbidden.
  const objects = manager.cache(clonePodResource, { awaited: 'not', indexes: clonePodIndexes })
  createClonePodMetrics(manager.metrics.registry, () => (manager.election.isLeader() ? objects.list() : []))
  recordPhases(phaseEventsOf(manager), clonePodResource, objects, clonePodSaid)
  const deps = { objects, sets, pods, migratingPods, clock: manager.clock }
  manager.controller({
    name: 'clonepod',
    for: objects,
    watches: [watch(migratingPods, change => controllersIn(change, clonePodResource))],
    reconcile: (key, context) => reconcile(deps, key, context),
  })
}
