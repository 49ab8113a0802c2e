import { type BackupPodSet, defaults } from '../../api/backuppodset.ts'
import { readAnnotation } from '../../api/json-annotation.ts'
import { keptBy } from '../../api/kept-by.ts'
import { deletionCostAnnotation } from '../../api/labels.ts'
import { int32In } from '../../api/parse-pod-migration-job.ts'
import { kindLabelOf } from '../../api/pod-kind.ts'
import {
  evictionCostAnnotation,
  koordinatorQosLabel,
  roomGate,
  softEvictionAnnotation,
} from '../../api/pod-migration-job.ts'
import { isSelected } from '../../kube/label-selector.ts'
import { keyOfRef } from '../../kube/object.ts'
import { controllerOf } from '../../kube/owner.ts'
import { isReady } from '../../kube/ready.ts'
import type { Deployment, Pod, PodDisruptionBudget, ReplicaSet, StatefulSet } from '../../kube/resources.ts'
import type { Store } from '../../kube/store.ts'
import { servingOf } from '../../slot/observe/stage.ts'
import {
  type DisruptionBudget,
  type PodFacts,
  type QosClass,
  qosClasses,
  type WorkloadFacts,
} from '../decide/world.ts'
import { nothing, type RoomOf } from './claims.ts'

/** The kubelet puts this on the API server's image of a pod that it runs from a file. */
export const mirrorAnnotation = 'kubernetes.io/config.mirror'

/** From this priority on, Kubernetes treats pods as critical for the system. */
const systemPriority = 2_000_000_000

export interface WorkloadStores {
  readonly pods: Store<Pod>
  readonly replicaSets: Store<ReplicaSet>
  readonly deployments: Store<Deployment>
  readonly statefulSets: Store<StatefulSet>
  readonly disruptionBudgets: Store<PodDisruptionBudget>
  readonly sets: Store<BackupPodSet>
}

/** Koordinator's class: by its label, else by Kubernetes' own class. */
function qosOf({ metadata, status }: Pod): QosClass {
  const label = metadata.labels?.[koordinatorQosLabel]
  const labelled = qosClasses.find(each => each === label)
  if (labelled !== undefined) return labelled
  if (status?.qosClass === 'Guaranteed') return 'LSR'
  return status?.qosClass === 'BestEffort' ? 'BE' : 'LS'
}

/** Characters. Those of jobs are shorter. */
export const longestSoftEviction = 4_096

/** The scheduler writes this condition before it deletes the pod for another one. */
const isPreempted = ({ status }: Pod): boolean =>
  status?.conditions?.some(
    ({ type, status: is, reason }) =>
      type === 'DisruptionTarget' && is === 'True' && reason === 'PreemptionByScheduler',
  ) === true

const isOver = ({ status }: Pod): boolean => status?.phase === 'Succeeded' || status?.phase === 'Failed'

/** The API server refuses any other text than an int32. */
function deletionCostOf(annotations: Readonly<Record<string, string>>): string | undefined {
  const text = annotations[deletionCostAnnotation]
  return text !== undefined && /^-?\d{1,10}$/.test(text) ? text : undefined
}

/** A tenant may write any text. */
function softEvictionByOf(annotations: Readonly<Record<string, string>>): string | undefined {
  const { initiator } = readAnnotation(annotations[softEvictionAnnotation], longestSoftEviction) ?? {}
  return typeof initiator === 'string' ? initiator : undefined
}

/** The workload at the top: the Deployment behind a ReplicaSet. */
function ownerOf(pod: Pod, { replicaSets }: Pick<WorkloadStores, 'replicaSets'>): PodFacts['owner'] {
  const controller = controllerOf(pod)
  if (controller === undefined) return { type: 'none' }
  const { namespace = '' } = pod.metadata
  const workload = ({ kind, name }: { readonly kind: string; readonly name: string }) =>
    ({ type: 'workload', kind, key: `${kind}/${namespace}/${name}` }) as const
  if (controller.kind !== 'ReplicaSet') return workload(controller)
  const replicaSet = replicaSets.get(keyOfRef({ namespace, name: controller.name }))
  if (replicaSet?.metadata.uid !== controller.uid)
    return { type: 'unknown', name: `ReplicaSet ${controller.name}` }
  return workload(controllerOf(replicaSet) ?? controller)
}

/** True of a pod that the scheduler does not see before a node has room. */
export const isGated = ({ spec }: Pod): boolean =>
  spec?.schedulingGates?.some(({ name }) => name === roomGate) === true

/**
 * Facts of all pods that have not finished successfully, by `namespace/name`.
 * @param roomOf counts what a pod takes. Absent: nothing needs it, and the cluster may have a hundred thousand pods.
 */
export function podFacts(stores: WorkloadStores, roomOf: RoomOf = nothing): ReadonlyMap<string, PodFacts> {
  const budgets = budgetsByNamespace(stores.disruptionBudgets.list())
  return new Map(
    stores.pods.list().map(pod => {
      const { namespace = '', name, uid, labels = {}, annotations = {} } = pod.metadata
      const { nodeName, priority = 0, priorityClassName = '', volumes = [] } = pod.spec ?? {}
      const owner = ownerOf(pod, stores)
      const facts: PodFacts = {
        ...{ uid, namespace, name, node: nodeName, labels, owner, priority },
        // A dead primary may be ready for a moment, while its heir answers.
        isReady: isReady(pod) && servingOf(pod).death === undefined,
        isTerminating: pod.metadata.deletionTimestamp !== undefined,
        graceSeconds: pod.metadata.deletionGracePeriodSeconds,
        isFailed: pod.status?.phase === 'Failed',
        qos: qosOf(pod),
        deletionCost: deletionCostOf(annotations),
        softEvictionBy: softEvictionByOf(annotations),
        evictionCost: int32In(annotations[evictionCostAnnotation]),
        isStatic: mirrorAnnotation in annotations || controllerOf(pod)?.kind === 'Node',
        hasLocalStorage: volumes.some(({ emptyDir }) => emptyDir !== undefined),
        hasClaim: volumes.some(({ ephemeral }) => ephemeral !== undefined),
        isSystemCritical:
          priority >= systemPriority || /^system-(cluster|node)-critical$/.test(priorityClassName),
        disruptionBudgets: (budgets.get(namespace) ?? [])
          .filter(({ selected }) => selected(labels))
          .map(({ key }) => key),
        nominated: nodeName === undefined ? pod.status?.nominatedNodeName || undefined : undefined,
        isPreempted: isPreempted(pod),
        ...(isOver(pod) ? nothing() : roomOf(pod)),
        preempts: pod.spec?.preemptionPolicy !== 'Never',
        placement: pod.spec ?? {},
      }
      return [`${namespace}/${name}`, facts] as const
    }),
  )
}

function budgetsByNamespace(all: readonly PodDisruptionBudget[]) {
  const byNamespace = new Map<string, { key: string; selected: (labels: PodFacts['labels']) => boolean }[]>()
  for (const { metadata, spec } of all) {
    const { namespace = '', name } = metadata
    const list = byNamespace.get(namespace) ?? []
    byNamespace.set(namespace, list)
    list.push({
      key: keyOfRef({ namespace, name }),
      selected: labels => isSelected(spec?.selector, labels),
    })
  }
  return byNamespace
}

export const disruptionBudgetsIn = (
  all: readonly PodDisruptionBudget[],
): ReadonlyMap<string, DisruptionBudget> =>
  new Map(
    all.map(({ metadata, spec, status }) => {
      const { namespace = '', name, generation = 0 } = metadata
      const budget: DisruptionBudget = {
        name: `${namespace}/${name}`,
        isCurrent: (status?.observedGeneration ?? -1) >= generation,
        allowed: status?.disruptionsAllowed ?? 0,
        currentHealthy: status?.currentHealthy ?? 0,
        desiredHealthy: status?.desiredHealthy ?? 0,
        sparesUnready: spec?.unhealthyPodEvictionPolicy === 'AlwaysAllow',
      }
      return [keyOfRef({ namespace, name }), budget]
    }),
  )

/** Facts of the workloads of these pods. */
export function workloadFacts(
  pods: ReadonlyMap<string, PodFacts>,
  stores: WorkloadStores,
): ReadonlyMap<string, WorkloadFacts> {
  const byWorkload = new Map<string, { kind: string; healthy: Set<string>; unhealthy: Set<string> }>()
  for (const [key, pod] of pods) {
    const { owner, uid } = pod
    const object = stores.pods.get(key)
    if (owner.type !== 'workload' || object === undefined || isOver(object)) continue
    // A cold backup is not ready as long as it waits at its gate, and its set misses nothing.
    if (owner.kind === 'BackupPodSet' && kindLabelOf(object) === 'coldbackup') continue
    const entry = byWorkload.get(owner.key) ?? { kind: owner.kind, healthy: new Set(), unhealthy: new Set() }
    byWorkload.set(owner.key, entry)
    const isHealthy = pod.isReady && !pod.isTerminating
    entry[isHealthy ? 'healthy' : 'unhealthy'].add(uid)
  }
  return new Map(
    [...byWorkload].map(([key, { kind, healthy, unhealthy }]) => {
      const [, namespace = '', name = ''] = key.split('/')
      const wanted = wantedBy(kind, keyOfRef({ namespace, name }), stores)
      const facts: WorkloadFacts = {
        desired: wanted?.desired ?? healthy.size + unhealthy.size,
        isRolling: wanted?.isRolling ?? false,
        ...{ healthy, unhealthy },
      }
      return [key, facts]
    }),
  )
}

type Wanted = Pick<WorkloadFacts, 'desired' | 'isRolling'>

/** Undefined: a kind that the operator does not know, or a workload that is gone. Its pods are all that it wants then. */
function wantedBy(kind: string, key: string, stores: WorkloadStores): Wanted | undefined {
  switch (kind) {
    case 'Deployment':
      return ofDeployment(stores.deployments.get(key))
    case 'StatefulSet':
      return ofStatefulSet(stores.statefulSets.get(key))
    case 'ReplicaSet': {
      const replicaSet = stores.replicaSets.get(key)
      return replicaSet && { desired: replicaSet.spec?.replicas ?? 1, isRolling: isUnseen(replicaSet) }
    }
    case 'BackupPodSet': {
      const set = stores.sets.get(key)
      return set && ofBackupPodSet(set)
    }
    default:
      return undefined
  }
}

/** Its controller has not seen its last change, such as another number of replicas. */
const isUnseen = ({
  metadata: { generation = 0 },
  status,
}: {
  readonly metadata: { readonly generation?: number }
  readonly status?: { readonly observedGeneration?: number }
}): boolean => (status?.observedGeneration ?? -1) < generation

function ofBackupPodSet(set: BackupPodSet): Wanted {
  const { replicas = 1, hotBackups = 0, updateStrategy } = set.spec
  const { status = {} } = set
  const usual = keptBy(set) === 'nothing' ? defaults.updateStrategy : defaults.updateStrategyWithMemory
  const isRolled = (updateStrategy?.type ?? usual) === 'RollingUpdate'
  const all = (status.replicas ?? 0) + (status.hotbackups ?? 0) + (status.coldbackups ?? 0)
  const isBehind = isRolled && status.updatedPods !== undefined && status.updatedPods < all
  return { desired: replicas + hotBackups, isRolling: isUnseen(set) || isBehind }
}

function ofDeployment(deployment: Deployment | undefined): Wanted | undefined {
  if (deployment === undefined) return undefined
  const { spec, status } = deployment
  const desired = spec?.replicas ?? 1
  const { replicas = 0, updatedReplicas = 0 } = status ?? {}
  return {
    desired,
    isRolling: isUnseen(deployment) || updatedReplicas < desired || replicas > updatedReplicas,
  }
}

function ofStatefulSet(statefulSet: StatefulSet | undefined): Wanted | undefined {
  if (statefulSet === undefined) return undefined
  const { spec, status } = statefulSet
  const desired = spec?.replicas ?? 1
  const { currentRevision, updateRevision, updatedReplicas = 0 } = status ?? {}
  const partition = spec?.updateStrategy?.rollingUpdate?.partition ?? 0
  const isOther = currentRevision !== updateRevision && updatedReplicas < desired - partition
  const isRolled = spec?.updateStrategy?.type !== 'OnDelete' && isOther
  return { desired, isRolling: isUnseen(statefulSet) || isRolled }
}
