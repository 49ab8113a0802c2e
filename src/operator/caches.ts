import { type BackupPodSet, backupPodSets } from '../api/backuppodset.ts'
import { drainCondition } from '../api/drain.ts'
import { gateContainerName } from '../api/gate.ts'
import { annotations, labels } from '../api/labels.ts'
import { memoryPermission } from '../api/memory-permission.ts'
import { migrations } from '../api/migration.ts'
import { nodeReports, parseReport } from '../api/node-report.ts'
import { migrationIndexes } from '../backuppodset/memory/moves.ts'
import { isPermitted } from '../backuppodset/memory/permission.ts'
import type { Missing } from '../backuppodset/missing.ts'
import { podIndexes } from '../backuppodset/pod-indexes.ts'
import { revisionIndexes } from '../backuppodset/revisions/observe.ts'
import { budgetIndexes } from '../drain/budget-observe.ts'
import type { Cache, CacheSet } from '../kube/cache-set.ts'
import {
  controllerRevisions,
  endpointSlices,
  leases as leaseResource,
  type Namespace,
  type Node,
  namespaces as namespaceResource,
  nodes as nodeResource,
  type Pod,
  type PodDisruptionBudget,
  podDisruptionBudgets,
  pods as podResource,
  services as serviceResource,
} from '../kube/resources.ts'
import { movingSetIndex } from '../migratingpod/observe.ts'
import { serviceIndexes, sliceIndexes } from '../slot/endpoints/observe.ts'
import { reportIndexes } from '../slot/observe/reports.ts'
import { leaseIndexes } from '../slot/observe/slot-leases.ts'
import type { OperatorOptions } from './options.ts'

/** Creates the caches of everything that the operator watches in the cluster. */
export function createCaches(
  { cache }: Pick<CacheSet, 'cache'>,
  { memoryNamespaces }: Pick<OperatorOptions, 'memoryNamespaces'>,
) {
  const labelled = { query: { labelSelector: labels.set } }
  // Sets without memory need none of these: where the agent is not installed, they may be missing or forbidden.
  const memoryOnly = {
    awaited: 'briefly',
    isNeeded: (): boolean => isMemoryWanted(always.sets, permitted),
  } as const
  const always = {
    sets: cache(backupPodSets),
    // Only pods with our label: the operator's memory use must not grow with the cluster.
    pods: cache(podResource, { ...labelled, indexes: podIndexes, transform: withoutBallast }),
  }
  const forMemory = {
    leases: cache(leaseResource, { ...memoryOnly, ...labelled, indexes: leaseIndexes }),
    reports: cache(nodeReports, { ...memoryOnly, indexes: reportIndexes, transform: parseReport }),
    nodes: cache(nodeResource, { ...memoryOnly, transform: labelsAndTaints }),
    services: cache(serviceResource, { ...memoryOnly, ...labelled, indexes: serviceIndexes }),
    slices: cache(endpointSlices, { ...memoryOnly, ...labelled, indexes: sliceIndexes }),
  }
  /** Namespaces that allow memory. */
  const permitted: Cache<Namespace> | 'everywhere' =
    memoryNamespaces === 'labelled'
      ? cache(namespaceResource, { ...memoryOnly, query: permittedNamespaces, transform: nameOnly })
      : 'everywhere'
  // Without it, only older templates are unavailable.
  const revisions = cache(controllerRevisions, { ...labelled, indexes: revisionIndexes, awaited: 'not' })
  // Without the kind, or the right to see it, no pod moves; all else works. A leader that does not know the Migrations yet
  // calls off all moves, and deletes the pods that were made for them.
  const indexes = { ...migrationIndexes, ...movingSetIndex }
  const moves = cache(migrations, { indexes, awaited: 'briefly', isNeeded: () => false })
  const needed = [...Object.values(forMemory), ...(permitted === 'everywhere' ? [] : [permitted])]
  return {
    stores: { ...always, ...forMemory, revisions, permitted, migrations: moves },
    /** Lists that sets with memory need and that are not complete yet. */
    missingForMemory: (): readonly Missing[] =>
      needed
        .filter(each => !each.hasSynced())
        .map(each => ({ resource: `${each.resource.kind}s`, why: each.problem() })),
  }
}

/** The operator makes its own budgets only where it knows those of others: two on one pod make every eviction fail. */
export const createBudgetCache = ({ cache }: Pick<CacheSet, 'cache'>): Cache<PodDisruptionBudget> =>
  cache(podDisruptionBudgets, { indexes: budgetIndexes, awaited: 'not', transform: withoutStatus })

/**
 * Ignores sets whose namespace does not allow memory: otherwise any tenant could make the operator depend on these
 * caches.
 */
const isMemoryWanted = (sets: Cache<BackupPodSet>, permitted: Cache<Namespace> | 'everywhere'): boolean =>
  sets
    .list()
    .some(
      ({ spec, metadata: { namespace = '' } }) =>
        spec.checkpoint !== undefined &&
        spec.checkpoint.source !== 'http' &&
        ((permitted !== 'everywhere' && !permitted.hasSynced()) || isPermitted(permitted, namespace)),
    )

const permittedNamespaces = { labelSelector: `${memoryPermission.label}=${memoryPermission.value}` }

const nameOnly = ({ metadata: { name, uid, resourceVersion } }: Namespace): Namespace => ({
  metadata: { name, uid, resourceVersion },
})

/**
 * With labels and taints, an administrator controls which pods a node may run, and empties it. The other fields are not
 * needed.
 */
const labelsAndTaints = ({
  metadata: { name, uid, resourceVersion, labels: all = {}, annotations: notes },
  spec,
  status,
}: Node): Node => {
  const stays = notes?.[annotations.stayRequested]
  const draining = status?.conditions?.filter(({ type }) => type === drainCondition) ?? []
  return {
    metadata: {
      ...{ name, uid, resourceVersion, labels: all },
      ...(stays && { annotations: { [annotations.stayRequested]: stays } }),
    },
    spec: { taints: spec?.taints ?? [], ...(spec?.unschedulable && { unschedulable: true }) },
    ...(draining.length > 0 && { status: { conditions: draining } }),
  }
}

const withoutStatus = ({ metadata, spec }: PodDisruptionBudget): PodDisruptionBudget => {
  const { managedFields: _, ...kept } = metadata
  return { metadata: kept, ...(spec && { spec }) }
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
