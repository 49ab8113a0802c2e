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

/** Names of the kinds for display. */
const kindsForMemory = {
  leases: 'Leases',
  reports: 'NodeReports',
  nodes: 'Nodes',
  services: 'Services',
  slices: 'EndpointSlices',
  namespaces: 'Namespaces',
} as const

type Mirror = Pick<ReflectorOptions<Pod>, 'api' | 'clock' | 'random' | 'log' | 'metrics'>

/** Creates the caches of everything that the operator watches in the cluster. */
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
    // Only pods with our label: the operator's memory use must not grow with the cluster.
    pods: createReflector({
      ...mirror,
      resource: podResource,
      query: { labelSelector: labels.set },
      store: pods,
      transform: withoutBallast,
    }),
  }
  // Sets without memory need none of these: where the agent is not installed, they may be missing or forbidden.
  const forMemory = {
    leases: createReflector({
      ...mirror,
      resource: leaseResource,
      query: { labelSelector: labels.set },
      store: leases,
    }),
    reports: createReflector({ ...mirror, resource: nodeReports, store: reports }),
    // With labels and taints, an administrator controls which pods a node may run. The other fields are not needed.
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
  // Kept apart: without it, only older templates are unavailable.
  const revisionReflector = createReflector({
    ...mirror,
    resource: controllerRevisions,
    query: { labelSelector: labels.set },
    store: revisions,
  })
  /**
   * Ignores sets whose namespace does not allow memory: otherwise any tenant could make the operator depend on these
   * caches.
   */
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
    /** Required for any decision. */
    reflectors,
    forMemory,
    /** Required by at least one existing set. */
    inUse: () => (isMemoryWanted() ? { ...reflectors, ...forMemory } : reflectors),
    /** Lists that sets with memory need and that are not complete yet. */
    missingForMemory: (): readonly Missing[] =>
      Object.entries(forMemory).flatMap(([name, reflector]) =>
        reflector.hasSynced()
          ? []
          : [{ resource: kindsForMemory[name as keyof typeof forMemory], why: reflector.problem() }],
      ),
    all: { ...reflectors, ...forMemory, revisions: revisionReflector },
    /** Caches of the resources that the operator writes. */
    written: cacheView({
      [resourceName(backupPodSets)]: sets,
      [resourceName(podResource)]: pods,
      [resourceName(leaseResource)]: leases,
      [resourceName(serviceResource)]: services,
      [resourceName(endpointSlices)]: slices,
    }),
  }
}

/** Drops the fields of a pod that no rule reads; they take up most of its size. */
export function withoutBallast(pod: Pod): Pod {
  const { managedFields: _, ...metadata } = pod.metadata
  const { nodeName, containers, initContainers, readinessGates, volumes } = pod.spec ?? { containers: [] }
  const claims = volumes?.filter(({ persistentVolumeClaim }) => persistentVolumeClaim !== undefined) ?? []
  const spec = {
    // The running containers identify the memory of a slot: see `containerIdsOf`.
    containers: containers.map(({ name }) => ({ name })),
    ...(nodeName === undefined ? {} : { nodeName }),
    ...(readinessGates ? { readinessGates } : {}),
    // A claim that other pods may also use decides whether memory can be kept: see `claimInTheWay`.
    ...(claims.length > 0 ? { volumes: claims } : {}),
    ...(initContainers
      ? {
          initContainers: initContainers.map(({ name, restartPolicy, command }) => ({
            name,
            ...(restartPolicy ? { restartPolicy } : {}),
            // The token digest, and whether the gate has a second path.
            ...(name === gateContainerName && command ? { command } : {}),
          })),
        }
      : {}),
  }
  return { ...pod, metadata, spec }
}
