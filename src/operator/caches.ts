import { type BackupPodSet, backupPodSets } from '../api/backuppodset.ts'
import { gateContainerName } from '../api/gate.ts'
import { labels } from '../api/labels.ts'
import { memoryPermission } from '../api/memory-permission.ts'
import { type NodeReport, nodeReports } from '../api/node-report.ts'
import { leaseIndexes } from '../backuppodset/memory/observe.ts'
import { reportIndexes } from '../backuppodset/memory/reports.ts'
import type { Missing } from '../backuppodset/missing.ts'
import { podIndexes } from '../backuppodset/observe.ts'
import { revisionIndexes } from '../backuppodset/revisions/observe.ts'
import { serviceIndexes, sliceIndexes } from '../backuppodset/services/observe.ts'
import { cacheView } from '../kube/consistency.ts'
import { createReflector, type ReflectorOptions } from '../kube/reflector.ts'
import {
  type ControllerRevision,
  controllerRevisions,
  type EndpointSlice,
  endpointSlices,
  type Lease,
  leases as leaseResource,
  type Namespace,
  type Node,
  namespaces as namespaceResource,
  nodes as nodeResource,
  type Pod,
  pods as podResource,
  resourceName,
  type Service,
  services as serviceResource,
} from '../kube/resources.ts'
import { createStore } from '../kube/store.ts'
import type { OperatorOptions } from './options.ts'

/** As people know them. */
const kindsForMemory = {
  leases: 'Leases',
  reports: 'NodeReports',
  nodes: 'Nodes',
  services: 'Services',
  slices: 'EndpointSlices',
  namespaces: 'Namespaces',
} as const

type Mirror = Pick<ReflectorOptions<Pod>, 'api' | 'clock' | 'random' | 'log' | 'metrics'>

/** Everything that the operator mirrors of the cluster. */
export function createCaches(
  mirror: Mirror,
  { memoryNamespaces }: Pick<OperatorOptions, 'memoryNamespaces'>,
) {
  const sets = createStore<BackupPodSet>()
  const pods = createStore<Pod>({ indexes: podIndexes })
  const leases = createStore<Lease>({ indexes: leaseIndexes })
  const reports = createStore<NodeReport>({ indexes: reportIndexes })
  const services = createStore<Service>({ indexes: serviceIndexes })
  const revisions = createStore<ControllerRevision>({ indexes: revisionIndexes })
  const slices = createStore<EndpointSlice>({ indexes: sliceIndexes })
  const nodes = createStore<Node>()
  const permitted = createStore<Namespace>()
  const reflectors = {
    sets: createReflector({ ...mirror, resource: backupPodSets, store: sets }),
    // Only pods that carry our label: the memory of the operator must not grow with the cluster.
    pods: createReflector({
      ...mirror,
      resource: podResource,
      query: { labelSelector: labels.set },
      store: pods,
      transform: withoutBallast,
    }),
  }
  // Sets without memory need none of these: where the agent is not installed they may be missing, or forbidden.
  const forMemory = {
    leases: createReflector({
      ...mirror,
      resource: leaseResource,
      query: { labelSelector: labels.set },
      store: leases,
    }),
    reports: createReflector({ ...mirror, resource: nodeReports, store: reports }),
    // By labels and taints an administrator says which pods a node is for; all else of a node is ballast.
    nodes: createReflector({
      ...mirror,
      resource: nodeResource,
      store: nodes,
      transform: ({ metadata: { name, uid, resourceVersion, labels: all = {} }, spec }) => ({
        metadata: { name, uid, resourceVersion, labels: all },
        spec: { taints: spec?.taints ?? [] },
      }),
    }),
    services: createReflector({
      ...mirror,
      resource: serviceResource,
      query: { labelSelector: labels.set },
      store: services,
    }),
    slices: createReflector({
      ...mirror,
      resource: endpointSlices,
      query: { labelSelector: labels.set },
      store: slices,
    }),
    ...(memoryNamespaces === 'labelled' && {
      namespaces: createReflector({
        ...mirror,
        resource: namespaceResource,
        query: { labelSelector: `${memoryPermission.label}=${memoryPermission.value}` },
        store: permitted,
        transform: ({ metadata: { name, uid, resourceVersion } }) => ({
          metadata: { name, uid, resourceVersion },
        }),
      }),
    }),
  }
  // Apart from these: without it older templates are forgotten, and nothing else.
  const revisionReflector = createReflector({
    ...mirror,
    resource: controllerRevisions,
    query: { labelSelector: labels.set },
    store: revisions,
  })
  /** A set whose namespace may not have memory makes no demand on the operator, or any tenant could make one. */
  const isMemoryWanted = () =>
    sets
      .list()
      .some(
        ({ spec, metadata: { namespace = '' } }) =>
          spec.checkpoint !== undefined &&
          spec.checkpoint.source !== 'http' &&
          (memoryNamespaces !== 'labelled' ||
            forMemory.namespaces?.hasSynced() === false ||
            permitted.get(namespace) !== undefined),
      )
  return {
    stores: {
      ...{ sets, pods, leases, reports, services, revisions, slices, nodes },
      /** Namespaces that allow memory. */
      permitted: memoryNamespaces === 'labelled' ? permitted : ('everywhere' as const),
    },
    /** Those without which nothing can be decided. */
    reflectors,
    forMemory,
    /** Those without which some set that is there gets nothing done. */
    inUse: () => (isMemoryWanted() ? { ...reflectors, ...forMemory } : reflectors),
    /** What is not known yet of what sets with memory need. */
    missingForMemory: (): readonly Missing[] =>
      Object.entries(forMemory).flatMap(([name, reflector]) =>
        reflector.hasSynced()
          ? []
          : [{ resource: kindsForMemory[name as keyof typeof forMemory], why: reflector.problem() }],
      ),
    all: { ...reflectors, ...forMemory, revisions: revisionReflector },
    /** Of what the operator writes. */
    written: cacheView({
      [resourceName(backupPodSets)]: sets,
      [resourceName(podResource)]: pods,
      [resourceName(leaseResource)]: leases,
      [resourceName(serviceResource)]: services,
      [resourceName(endpointSlices)]: slices,
    }),
  }
}

/** Drops what no rule reads and what makes up most of a pod in memory. */
export function withoutBallast(pod: Pod): Pod {
  const { managedFields: _, ...metadata } = pod.metadata
  const { nodeName, containers, initContainers, readinessGates, volumes } = pod.spec ?? { containers: [] }
  const claims = volumes?.filter(({ persistentVolumeClaim }) => persistentVolumeClaim !== undefined) ?? []
  const spec = {
    // Which of them run says whose memory a slot has: see `containerIdsOf`.
    containers: containers.map(({ name }) => ({ name })),
    ...(nodeName === undefined ? {} : { nodeName }),
    ...(readinessGates ? { readinessGates } : {}),
    // Who else may have them says whether its memory can be kept: see `claimInTheWay`.
    ...(claims.length > 0 ? { volumes: claims } : {}),
    ...(initContainers
      ? {
          initContainers: initContainers.map(({ name, restartPolicy, command }) => ({
            name,
            ...(restartPolicy ? { restartPolicy } : {}),
            // Whose token opens it, and whether there is another door.
            ...(name === gateContainerName && command ? { command } : {}),
          })),
        }
      : {}),
  }
  return { ...pod, metadata, spec }
}
