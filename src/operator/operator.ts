import { hostname } from 'node:os'
import type { Logger } from 'pino'
import { operatorElection } from '../api/election.ts'
import { metricName } from '../api/metrics.ts'
import { type MigratingPod, migratingPods as migratingPodResource } from '../api/migrating-pod.ts'
import { migrations as migrationResource } from '../api/migration.ts'
import { setsNamedBy } from '../api/set-label.ts'
import { failurePauses } from '../backuppodset/action-retries.ts'
import { createSetController } from '../backuppodset/controller.ts'
import { createSetMetrics } from '../backuppodset/metrics.ts'
import { laneOf, seriesOf } from '../backuppodset/set-events.ts'
import { createBudgetController } from '../drain/budget-controller.ts'
import { createDrainController } from '../drain/controller.ts'
import { createDrainMetrics } from '../drain/metrics.ts'
import { drainedNodes, observeDrain } from '../drain/observe.ts'
import type { Api } from '../kube/api.ts'
import { createBuildInfo } from '../kube/build-info.ts'
import type { Cache } from '../kube/cache-set.ts'
import { createConsistencyStore } from '../kube/consistency.ts'
import { keepWarm } from '../kube/keep-warm.ts'
import { type Manager, runManager } from '../kube/manager.ts'
import { watch } from '../kube/manager-types.ts'
import { keyOf } from '../kube/object.ts'
import { reconcile as reconcileMigratingPod } from '../migratingpod/controller.ts'
import { createMigratingPodMetrics } from '../migratingpod/metrics.ts'
import { byMovingSet, movingSetIndex } from '../migratingpod/observe.ts'
import { createMigrationController } from '../migration/controller.ts'
import { createMigrationMetrics } from '../migration/metrics.ts'
import { recordPhases } from '../phase-events/phase-events.ts'
import { migratingPodSaid, migrationSaid } from '../phase-events/said.ts'
import { type WakeKeys, wakeKeyId } from '../slot/gate/token.ts'
import { loadWakeKeys } from '../slot/gate/wake-key.ts'
import { createPullMetrics } from '../slot/http-state/metrics.ts'
import { createNamedSets } from '../slot/report/named-sets.ts'
import { createStateStoreMetrics } from '../state-store/metrics.ts'
import { openStateStore } from '../state-store/open.ts'
import { createWriteBehind, type WriteBehind } from '../state-store/write-behind.ts'
import { createBudgetCache, createCaches } from './caches.ts'
import { leadClonePods } from './clone-pods.ts'
import { createDiskHalves } from './disk-halves.ts'
import { keepGenerationsKey } from './generations-key.ts'
import { leadMigratingJobs } from './migrating-jobs.ts'
import type { OperatorOptions } from './options.ts'
import { phaseEventsOf } from './phase-events.ts'
import { leadJobs } from './pod-migration-jobs.ts'
import { createStageController } from './stage-label.ts'
import { leadTraces } from './traces.ts'

/** Longer than any pass: a pass ends after some batches, does not wait for wakeupTimeout, and its requests have deadlines. */
const passLimitMs = 300_000
/** Connections kept open for the burst after a failure: one for each creation of a first batch, and for conversions. */
const warm = { bulk: 8, urgent: 8 } as const

/**
 * Runs the operator until the signal fires. If the API server is down, it waits: it is then alive but not ready.
 * @throws Error if the configured cluster cannot be reached, or a port is in use.
 */
export const runOperator = (
  options: OperatorOptions,
  log: Logger,
  version: string,
  signal: AbortSignal,
): Promise<void> =>
  runManager(
    {
      name: operatorElection.name,
      ...{ version, log, passLimitMs },
      namespace: options.namespace,
      identity: options.identity,
      leaderElect: options.leaderElect,
      kubeconfig: options.kubeconfig,
      connections: options.connections,
      healthPort: options.healthPort,
      metricsPort: options.metricsPort,
    },
    manager => {
      const labels = { component: 'operator', version } as const
      createBuildInfo(manager.metrics.registry, metricName('build_info'), labels)
      return setUp(manager, options, version)
    },
    signal,
  )

async function setUp(manager: Manager, options: OperatorOptions, version: string): Promise<void> {
  const { api, leaderApi, metrics, clock, random, log } = manager
  const wakeKeys = await manager.whenReachable(() =>
    loadWakeKeys(api, options.namespace, random, manager.signal),
  )
  log.info({ ids: wakeKeys.map(wakeKeyId) }, 'loaded the keys of cold backups; the first is for new ones')
  const stateStore = await openState(manager, options, wakeKeys)
  const urgentApi = openUrgent(manager, options)
  const caches = createCaches(manager, options)
  const { sets, nodes, reports } = caches.stores
  leadSets(manager, options, { wakeKeys, stateStore, urgentApi, caches })
  leadMigrations(manager, options, caches)
  leadDrains(manager, caches)
  leadJobs(manager, options, caches.stores)
  const migratingPods = leadMigratingPods(manager, caches)
  leadMigratingJobs(manager, options, migratingPods)
  leadClonePods(manager, options, caches.stores, migratingPods)
  await leadTraces(manager, options, version, caches.stores)

  const stageController = createStageController({
    ...{ api: leaderApi, reports, nodes },
    queue: manager.queue({ name: 'stage' }),
    controllerMetrics: metrics.controller,
    ...{ clock, random, log },
  })
  manager.leading(stageController.run)

  const diskHalves = createDiskHalves({
    ...{ api: leaderApi, reports, wakeKeys },
    queue: manager.queue({ name: 'disk-half' }),
    controllerMetrics: metrics.controller,
    ...{ clock, random, log },
  })
  manager.leading(diskHalves.run)

  const wanted = () => sets.list().some(({ spec }) => spec.checkpoint !== undefined)
  const namespace = options.agentNamespace
  manager.leading(stop => keepGenerationsKey({ api: leaderApi, namespace, wanted, clock, random, log }, stop))
}

/** Opens the store of history and pulled states, and writes to it in the background. */
async function openState(
  manager: Manager,
  options: OperatorOptions,
  wakeKeys: WakeKeys,
): Promise<WriteBehind> {
  const { clock, random, log, metrics } = manager
  const stateStore = await openStateStore(options, wakeKeys, { clock, log, random })
  manager.defer(() => stateStore.close())
  const writeBehind = createWriteBehind(stateStore, {
    ...{ clock, log, metrics: createStateStoreMetrics(metrics.registry) },
  })
  manager.background(writeBehind.run)
  return writeBehind
}

/** Opens the client of urgent requests, and keeps connections of both clients open. */
function openUrgent(manager: Manager, options: OperatorOptions): Api {
  const { api, clock, log } = manager
  const urgentApi = manager.client({ connections: warm.urgent })
  const keepOpen = (client: Api, connections: number) =>
    manager.background(until => keepWarm({ api: client, connections, clock, log }, until))
  keepOpen(api, Math.min(warm.bulk, options.connections))
  keepOpen(urgentApi, warm.urgent)
  return urgentApi
}

/** Only the leader exports numbers of objects: the sum over the replicas would count them twice. */
const leads = ({ election }: Pick<Manager, 'election'>): boolean => election.isLeader()

/** Adds the controller of Migrations to the work of the leader. */
function leadMigrations(
  manager: Manager,
  options: OperatorOptions,
  { stores, missingForMemory }: Pick<ReturnType<typeof createCaches>, 'stores' | 'missingForMemory'>,
): void {
  const { clock, random, log, metrics } = manager
  const controller = createMigrationController({
    ...stores,
    api: manager.leaderApi,
    budgets: {
      perSet: options.migrationsPerSet,
      perNode: options.migrationsPerNode,
      perNamespace: options.migrationsPerNamespace,
      total: options.migrations,
    },
    isMissing: () => missingForMemory().length > 0,
    queue: manager.queue({ name: 'migration' }),
    metrics: createMigrationMetrics(metrics.registry, () => ({
      migrations: leads(manager) ? stores.migrations.list() : [],
      now: clock.now(),
    })),
    controllerMetrics: metrics.controller,
    ...{ clock, random, log },
  })
  manager.leading(controller.run)
  recordPhases(phaseEventsOf(manager), migrationResource, stores.migrations, migrationSaid)
}

/** Adds the controllers of drains to the work of the leader. */
function leadDrains(
  manager: Manager,
  { stores, missingForMemory }: Pick<ReturnType<typeof createCaches>, 'stores' | 'missingForMemory'>,
): void {
  const { clock, random, log, metrics } = manager
  const budgets = createBudgetCache(manager)
  const shared = {
    ...stores,
    budgets,
    api: manager.leaderApi,
    recorder: manager.recorder(),
    controllerMetrics: metrics.controller,
    ...{ clock, random, log },
  }
  const drains = createDrainController({
    ...shared,
    isMissing: () => missingForMemory().length > 0 || !stores.migrations.hasSynced(),
    queue: manager.queue({ name: 'drain' }),
  })
  createDrainMetrics(metrics.registry, () =>
    leads(manager) && drainedNodes(stores.nodes).size > 0 ? observeDrain(stores).primaries : [],
  )
  manager.leading(drains.run)
  const protects = createBudgetController({
    ...shared,
    isMissing: () => missingForMemory().length > 0 || !budgets.hasSynced(),
    queue: manager.queue({ name: 'budget' }),
  })
  manager.leading(protects.run)
}

/** Adds the controller of MigratingPods, which keeps a set for each. @returns their cache. */
function leadMigratingPods(
  manager: Manager,
  { stores: { sets, pods, leases, migrations } }: Pick<ReturnType<typeof createCaches>, 'stores'>,
): Cache<MigratingPod> {
  // Without the kind, or the right to see it, only sets that users write are managed.
  const migratingPods = manager.cache(migratingPodResource, { awaited: 'not' })
  const deps = { objects: migratingPods, sets, pods, leases, migrations, clock: manager.clock }
  createMigratingPodMetrics(manager.metrics.registry, () => (leads(manager) ? migratingPods.list() : []))
  const isOne = (key: string) => migratingPods.get(key) !== undefined
  manager.controller({
    name: 'migratingpod',
    for: migratingPods,
    watches: [
      // Its set, and one of another owner that is in its way.
      watch(sets, ({ object }) => [keyOf(object)].filter(isOne)),
      watch(pods, ({ object }) => setsNamedBy(object).filter(isOne)),
      watch(leases, ({ object }) => setsNamedBy(object).filter(isOne)),
      watch(migrations, ({ object }) => movingSetIndex[byMovingSet](object).filter(isOne)),
    ],
    reconcile: (key, context) => reconcileMigratingPod(deps, key, context),
  })
  recordPhases(phaseEventsOf(manager), migratingPodResource, migratingPods, migratingPodSaid)
  return migratingPods
}

/** Adds the controller of sets to the work of the leader. */
function leadSets(
  manager: Manager,
  options: OperatorOptions,
  {
    wakeKeys,
    stateStore,
    urgentApi,
    caches,
  }: {
    readonly wakeKeys: WakeKeys
    readonly stateStore: WriteBehind
    readonly urgentApi: Api
    readonly caches: ReturnType<typeof createCaches>
  },
): void {
  const { election, metrics, clock, random, log } = manager
  const { sets, pods, revisions } = caches.stores
  const named = createNamedSets()
  const controller = createSetController({
    ...caches.stores,
    api: manager.leaderApi,
    urgentApi: manager.fenced(urgentApi),
    mayWrite: election.isLeader,
    reign: election.reign,
    revisionsKnown: revisions.hasSynced,
    instance: hostname(),
    missingForMemory: caches.missingForMemory,
    consistency: createConsistencyStore({
      ...{ cache: manager.caches.view, clock, log, metrics: metrics.consistency },
    }),
    queue: manager.queue({ name: 'backuppodset', backoff: failurePauses }),
    recorder: manager.recorder({ seriesOf, laneOf }),
    settings: { wakerImage: options.wakerImage, injected: options.injectedResources, wakeKeys },
    metrics: createSetMetrics(metrics.registry, named),
    pullMetrics: createPullMetrics(metrics.registry, named),
    stateStore,
    stateBudget: options.stateBudget,
    controllerMetrics: metrics.controller,
    workers: options.workers,
    ...{ clock, random, log },
  })
  manager.defer(controller.close)
  manager.leading((stop, lost) => {
    log.info({ sets: sets.size, pods: pods.size }, 'leading')
    return controller.run(stop, lost)
  })
}
