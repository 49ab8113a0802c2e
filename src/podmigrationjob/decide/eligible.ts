/** Rules that refuse a pod for good. A job that they refuse fails, and does not wait. */
import type { MigrationControllerArgs } from '../../api/migration-controller-args.ts'
import { evictionCostAnnotation, neverEvict } from '../../api/pod-migration-job.ts'
import { isSelected } from '../../kube/label-selector.ts'
import { threshold } from './threshold.ts'
import type { PodFacts, WaitingJob, World } from './world.ts'

/** Returns why the pod may not be migrated; undefined if it may. */
export function refusalOf(
  job: Pick<WaitingJob, 'skipGates' | 'mode'>,
  pod: PodFacts,
  world: Pick<World, 'workloads'>,
  args: MigrationControllerArgs,
): string | undefined {
  const refusal = always(pod) ?? byGate(job, pod, world, args)
  return refusal === undefined ? undefined : `the pod may not be migrated: ${refusal}`
}

/** No gate opens these. */
function always(pod: PodFacts): string | undefined {
  if (pod.evictionCost === neverEvict)
    return `its annotation ${evictionCostAnnotation} is ${neverEvict}, which means never`
  if (pod.isStatic) return 'the kubelet runs it from a file of the node'
  if (pod.owner.type === 'workload' && pod.owner.kind === 'DaemonSet')
    return 'it belongs to a DaemonSet, which would create it on the same node again'
  if (pod.qos === 'SYSTEM') return 'its class of quality of service is SYSTEM'
  return undefined
}

function byGate(
  { skipGates, mode }: Pick<WaitingJob, 'skipGates' | 'mode'>,
  pod: PodFacts,
  { workloads }: Pick<World, 'workloads'>,
  args: MigrationControllerArgs,
): string | undefined {
  const isClosed = (gate: Parameters<typeof skipGates.has>[0]) => !skipGates.has(gate)
  if (
    args.labelSelector !== undefined &&
    isClosed('LabelSelector') &&
    !isSelected(args.labelSelector, pod.labels)
  )
    return 'the labelSelector of the configuration does not select it'
  if (pod.isSystemCritical && !args.evictSystemCriticalPods && isClosed('SystemCritical'))
    return 'it is critical for the system; set evictSystemCriticalPods, or skip the gate SystemCritical'
  // A pod that moves with its memory moves with its volumes, or its Migration says why not.
  if (mode === 'Live') return undefined
  if (pod.owner.type === 'none' && !(pod.isFailed && args.evictFailedBarePods) && isClosed('BarePod'))
    return 'no controller would create it again; skip the gate BarePod if it is to go all the same'
  if (pod.hasLocalStorage && !args.evictLocalStoragePods && isClosed('LocalStorage'))
    return 'it has an emptyDir or a hostPath; set evictLocalStoragePods, or skip the gate LocalStorage'
  if (pod.hasClaim && args.ignorePvcPods && isClosed('PersistentVolumeClaim'))
    return 'it has a PersistentVolumeClaim; unset ignorePvcPods, or skip the gate PersistentVolumeClaim'
  const workload = pod.owner.type === 'workload' ? workloads.get(pod.owner.key) : undefined
  if (workload !== undefined && !args.skipCheckExpectedReplicas && isClosed('ExpectedReplicas'))
    return expected(workload.desired, args)
  return undefined
}

/** Koordinator refuses workloads of which all pods could be away at once. */
function expected(desired: number, args: MigrationControllerArgs): string | undefined {
  const { maxMigratingPerWorkload, maxUnavailablePerWorkload, rounding } = args
  const all = [maxMigratingPerWorkload, maxUnavailablePerWorkload].some(
    limit => threshold(desired, limit, rounding) >= desired,
  )
  return desired === 1 || all
    ? `all ${desired} pods of its workload could be away at once; skip the gate ExpectedReplicas if they may`
    : undefined
}
