/** Caches of the pods and workloads of the whole cluster. They are opened when the first job comes, because of their size. */

import { deletionCostAnnotation } from '../../api/labels.ts'
import { argsConfigMap } from '../../api/migration-controller-args.ts'
import { evictionCostAnnotation, softEvictionAnnotation } from '../../api/pod-migration-job.ts'
import type { Api } from '../../kube/api-types.ts'
import { type Cache, createCacheSet } from '../../kube/cache-set.ts'
import type { Clock } from '../../kube/clock.ts'
import type { Log } from '../../kube/log.ts'
import type { KubeObject } from '../../kube/object.ts'
import type { Random } from '../../kube/random.ts'
import {
  type ConfigMap,
  configMaps,
  type Deployment,
  deployments,
  type Node,
  nodes,
  type Pod,
  type PodDisruptionBudget,
  podDisruptionBudgets,
  pods,
  type ReplicaSet,
  replicaSets,
  type StatefulSet,
  statefulSets,
} from '../../kube/resources.ts'
import type { Store } from '../../kube/store.ts'
import { claimOf, withoutBallast } from './claims.ts'
import { longestSoftEviction, mirrorAnnotation } from './pod-facts.ts'

export interface WorldStores {
  readonly pods: Store<Pod>
  readonly replicaSets: Store<ReplicaSet>
  readonly deployments: Store<Deployment>
  readonly statefulSets: Store<StatefulSet>
  readonly disruptionBudgets: Store<PodDisruptionBudget>
  readonly configMaps: Store<ConfigMap>
  readonly nodes: Store<Node>
}

export interface WorldCaches {
  readonly stores: WorldStores
  /** The lists that are not complete yet, with what the API server says about them. */
  missing(): readonly { readonly resource: string; readonly why: string | undefined }[]
  /** Calls `listener` after any change. */
  subscribe(listener: () => void): void
  /** Resolves when the signal has fired and all watches have ended. */
  readonly ended: Promise<void>
}

export interface WorldCachesOptions {
  readonly api: Pick<Api, 'list' | 'watch'>
  /** The operator's own namespace, with the configuration. */
  readonly namespace: string
  readonly clock: Clock
  readonly random: Random
  readonly log: Log
}

/** Opens the caches; they follow the cluster until the signal fires. */
export function openWorld(options: WorldCachesOptions, signal: AbortSignal): WorldCaches {
  const { namespace, ...mirror } = options
  const set = createCacheSet(mirror)
  const fieldSelector = `metadata.name=${argsConfigMap.name}`
  const caches = {
    pods: set.cache(pods, { transform: withoutSpec }),
    replicaSets: set.cache(replicaSets, { transform: withoutTemplate }),
    deployments: set.cache(deployments, { transform: withoutTemplate }),
    statefulSets: set.cache(statefulSets, { transform: withoutTemplate }),
    disruptionBudgets: set.cache(podDisruptionBudgets),
    configMaps: set.cache(configMaps, { query: { namespace, fieldSelector } }),
    nodes: set.cache(nodes, { transform: withoutBallast }),
  }
  const all: readonly Cache<KubeObject>[] = Object.values(caches)
  return {
    stores: caches,
    missing: () =>
      all
        .filter(cache => !cache.hasSynced())
        .map(cache => ({ resource: cache.resource.plural, why: cache.problem() })),
    subscribe: listener => {
      for (const cache of all) cache.subscribe(listener)
    },
    ended: set.run(signal),
  }
}

const keptAnnotations: readonly string[] = [
  ...[evictionCostAnnotation, deletionCostAnnotation, softEvictionAnnotation, mirrorAnnotation],
]

const keptConditions: readonly string[] = ['Ready', 'PodScheduled', 'DisruptionTarget']

/** Drops what no rule reads: the cluster may have a hundred thousand pods. */
export function withoutSpec({ metadata, spec, status }: Pod): Pod {
  const { managedFields: _, annotations = {}, ...rest } = metadata
  const kept = Object.entries(annotations).filter(
    ([name, text]) => keptAnnotations.includes(name) && text.length <= longestSoftEviction,
  )
  const { nodeName, priority, priorityClassName, preemptionPolicy, volumes = [] } = spec ?? {}
  const { phase, qosClass, nominatedNodeName, conditions = [] } = status ?? {}
  return {
    metadata: { ...rest, annotations: Object.fromEntries(kept) },
    spec: {
      ...claimOf(spec ?? { containers: [] }),
      ...(nodeName !== undefined && { nodeName }),
      ...(priority !== undefined && { priority }),
      ...(priorityClassName !== undefined && { priorityClassName }),
      ...(preemptionPolicy === 'Never' && { preemptionPolicy }),
      volumes: volumes.flatMap(kindOfVolume),
    },
    status: {
      ...(phase !== undefined && { phase }),
      ...(qosClass !== undefined && { qosClass }),
      ...(nominatedNodeName !== undefined && { nominatedNodeName }),
      conditions: conditions.filter(({ type }) => keptConditions.includes(type)),
    },
  }
}

type Volume = NonNullable<NonNullable<Pod['spec']>['volumes']>[number]

/** Local storage as an emptyDir, and claims as an ephemeral one. */
function kindOfVolume({ name, emptyDir, hostPath, ...volume }: Volume): readonly Volume[] {
  if (emptyDir !== undefined || hostPath !== undefined) return [{ name, emptyDir: {} }]
  const isClaim = volume.persistentVolumeClaim !== undefined || volume.ephemeral !== undefined
  return isClaim ? [{ name, ephemeral: {} }] : []
}

function withoutTemplate<T extends KubeObject & { readonly spec?: object }>(workload: T): T {
  const { managedFields: _, annotations: __, ...metadata } = workload.metadata
  return {
    ...workload,
    metadata,
    ...(workload.spec && { spec: { ...workload.spec, template: undefined } }),
  }
}
