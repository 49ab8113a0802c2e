import { hostname } from 'node:os'
import type { Logger } from 'pino'
import { type BackupPodSet, backupPodSets } from '../api/backuppodset.ts'
import { operatorElection } from '../api/election.ts'
import { labels } from '../api/labels.ts'
import { memoryPermission } from '../api/memory-permission.ts'
import { type NodeReport, nodeReports } from '../api/node-report.ts'
import { stageLabel } from '../api/stage.ts'
import { createSetController } from '../backuppodset/controller.ts'
import { failurePauses } from '../backuppodset/failures.ts'
import { leaseIndexes } from '../backuppodset/memory/observe.ts'
import { reportIndexes } from '../backuppodset/memory/reports.ts'
import { createSetMetrics } from '../backuppodset/metrics.ts'
import { podIndexes } from '../backuppodset/observe.ts'
import { createPullMetrics } from '../backuppodset/pulled/metrics.ts'
import { revisionIndexes } from '../backuppodset/revisions/observe.ts'
import { serviceIndexes, sliceIndexes } from '../backuppodset/services/observe.ts'
import { loadWakeKey } from '../backuppodset/wake-key.ts'
import { createApi } from '../kube/api.ts'
import { systemClock as clock } from '../kube/clock.ts'
import { loadConnection } from '../kube/connection.ts'
import { cacheView, createConsistencyStore } from '../kube/consistency.ts'
import { createElector } from '../kube/election.ts'
import { fenced } from '../kube/fence.ts'
import { freshen } from '../kube/freshen.ts'
import {
  createHealthServer,
  createMetricsServer,
  eventLoopCheck,
  freshCheck,
  queueCheck,
  syncedCheck,
} from '../kube/health.ts'
import { keepWarm } from '../kube/keep-warm.ts'
import { createMetrics } from '../kube/metrics.ts'
import { createQueue } from '../kube/queue.ts'
import { systemRandom as random } from '../kube/random.ts'
import { createRecorder } from '../kube/recorder.ts'
import { createReflector, type Reflector } from '../kube/reflector.ts'
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
import { createStateStoreMetrics } from '../state-store/metrics.ts'
import { openStateStore } from '../state-store/open.ts'
import { createWriteBehind } from '../state-store/write-behind.ts'
import { keepGenerationsKey } from './generations-key.ts'
import type { OperatorOptions } from './options.ts'
import { createStageController } from './stage-label.ts'

/** A live process answers within this; longer means that it hangs and is to be restarted. */
const eventLoopLimitMs = 10_000
/**
 * Longer than any pass: it ends after some batches, wakeupTimeout is waited for outside of it, and requests have
 * deadlines of their own.
 */
const passLimitMs = 300_000
/** Bookmarks come about every minute, and a watch without a byte is given up after a minute and a half. */
const newsLimitMs = 120_000
/** How long the beginning of a term may take: at first, and at most, where no candidate has been fast enough. */
const freshMs = 5_000
const freshLimitMs = 60_000
const flushMs = 2_000
/** How long a candidate waits for the caches that only sets with memory need. */
const memoryPatienceMs = 3_000
/** Connections held open for the burst after a failure: as many creations as the first batch has, and conversions. */
const warm = { bulk: 8, urgent: 8 } as const

/**
 * Runs the operator until the signal fires. Caches are filled whether it leads or not, so that a standby can take over
 * at once.
 * @throws Error when the cluster cannot be reached as configured, or a port is taken.
 */
export async function runOperator(
  options: OperatorOptions,
  log: Logger,
  version: string,
  signal: AbortSignal,
): Promise<void> {
  const metrics = createMetrics()
  const connection = await loadConnection({ kubeconfig: options.kubeconfig })
  const shared = { connection, metrics: metrics.api, userAgent: `understudy-operator/${version}`, log }
  const api = createApi({ ...shared, connections: options.connections })
  const urgentApi = createApi({ ...shared, connections: warm.urgent })
  // It asks three times a second, so it is the first to know that the server is back.
  const electionApi = createApi({
    ...shared,
    connections: 1,
    onReachable: () => {
      for (const reflector of mirrors) reflector.kick()
    },
  })
  const settings = {
    wakerImage: options.wakerImage,
    wakeKey: await loadWakeKey(api, options.namespace, random, signal),
  }

  const stateStore = await openStateStore(options, settings.wakeKey, { clock, log, random })
  const writeBehind = createWriteBehind(stateStore, {
    clock,
    log,
    metrics: createStateStoreMetrics(metrics.registry),
  })

  const sets = createStore<BackupPodSet>()
  const pods = createStore<Pod>({ indexes: podIndexes })
  const leases = createStore<Lease>({ indexes: leaseIndexes })
  const reports = createStore<NodeReport>({ indexes: reportIndexes })
  const services = createStore<Service>({ indexes: serviceIndexes })
  const revisions = createStore<ControllerRevision>({ indexes: revisionIndexes })
  const slices = createStore<EndpointSlice>({ indexes: sliceIndexes })
  const stages = createStore<Node>()
  const permitted = createStore<Namespace>()
  const mirror = { api, clock, random, log, metrics: metrics.reflector }
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
    ...(options.memoryNamespaces === 'labelled' && {
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
  const stage = createReflector({
    ...mirror,
    resource: nodeResource,
    query: { labelSelector: stageLabel },
    store: stages,
    transform: ({ metadata: { name, uid, resourceVersion, labels: all } }) => ({
      metadata: { name, uid, resourceVersion, labels: { [stageLabel]: all?.[stageLabel] ?? '' } },
    }),
  })
  const caches = { ...reflectors, ...forMemory, revisions: revisionReflector, stages: stage }
  const mirrors: readonly Reflector[] = Object.values(caches)
  const mayWrite = () => !options.leaderElect || elector.isLeader()
  const leaderApi = fenced(api, mayWrite)
  const consistency = createConsistencyStore({
    cache: cacheView({
      [resourceName(backupPodSets)]: sets,
      [resourceName(podResource)]: pods,
      [resourceName(leaseResource)]: leases,
      [resourceName(serviceResource)]: services,
      [resourceName(endpointSlices)]: slices,
    }),
    clock,
    log,
    metrics: metrics.consistency,
  })
  const queue = createQueue({
    clock,
    name: 'backuppodset',
    metrics: metrics.queue,
    backoff: failurePauses,
    random,
  })
  const recorder = createRecorder({
    api,
    component: 'understudy-operator',
    instance: hostname(),
    clock,
    log,
    metrics: metrics.recorder,
  })
  const controller = createSetController({
    api: leaderApi,
    urgentApi: fenced(urgentApi, mayWrite),
    mayWrite,
    sets,
    pods,
    leases,
    reports,
    services,
    slices,
    revisions,
    permitted: options.memoryNamespaces === 'labelled' ? permitted : 'everywhere',
    revisionsKnown: () => revisionReflector.hasSynced(),
    instance: hostname(),
    memoryKnown: () => Object.values(forMemory).every(reflector => reflector.hasSynced()),
    consistency,
    queue,
    recorder,
    settings,
    metrics: createSetMetrics(metrics.registry),
    pullMetrics: createPullMetrics(metrics.registry),
    stateStore: writeBehind,
    controllerMetrics: metrics.controller,
    workers: options.workers,
    clock,
    random,
    log,
  })
  const stageQueue = createQueue({ clock, name: 'stage', metrics: metrics.queue, random })
  const stageController = createStageController({
    api: leaderApi,
    reports,
    nodes: stages,
    queue: stageQueue,
    controllerMetrics: metrics.controller,
    clock,
    random,
    log,
  })
  const elector = createElector({
    api: electionApi,
    namespace: options.namespace,
    name: operatorElection.name,
    identity: options.identity,
    clock,
    random,
    log,
    metrics: metrics.election,
  })

  using eventLoop = eventLoopCheck(eventLoopLimitMs)
  const servers = await Promise.all([
    createHealthServer({
      port: options.healthPort,
      live: { eventloop: eventLoop, queue: queueCheck(queue, passLimitMs) },
      ready: { caches: syncedCheck(reflectors), news: freshCheck(reflectors, newsLimitMs) },
      clock,
      log,
    }),
    createMetricsServer({ port: options.metricsPort, registry: metrics.registry, log }),
  ])
  // Caches outlive the work that reads them: passes may finish after the signal has fired.
  const mirroringEnds = new AbortController()
  const mirroring = Promise.all([
    ...mirrors.map(reflector => reflector.run(mirroringEnds.signal)),
    keepWarm(
      { api, connections: Math.min(warm.bulk, options.connections), clock, log },
      mirroringEnds.signal,
    ),
    keepWarm({ api: urgentApi, connections: warm.urgent, clock, log }, mirroringEnds.signal),
    writeBehind.run(mirroringEnds.signal),
  ])
  try {
    // A candidate with empty caches would keep a warm one from leading.
    await Promise.all(Object.values(reflectors).map(reflector => reflector.synced(signal)))
    await soon(Object.values(forMemory).map(reflector => reflector.synced(signal)))
    let givenBack = 0
    const lead = async (stop: AbortSignal, lost: AbortSignal) => {
      // What has never been complete is read after this moment, or not at all.
      const known = Object.entries(caches).filter(([, cache]) => cache.hasSynced())
      const patienceMs = Math.min(freshLimitMs, freshMs * 2 ** givenBack)
      givenBack += 1
      await freshen({ caches: Object.fromEntries(known), patienceMs, clock, log }, stop)
      givenBack = 0
      await work(stop, lost)
    }
    const work = async (stop: AbortSignal, lost?: AbortSignal) => {
      log.info({ sets: sets.size, pods: pods.size }, 'leading')
      await Promise.all([
        controller.run(stop, lost),
        stageController.run(stop, lost),
        keepGenerationsKey(
          {
            api: leaderApi,
            namespace: options.agentsNamespace,
            wanted: () => sets.list().some(({ spec }) => spec.checkpoint !== undefined),
            ...{ clock, random, log },
          },
          stop,
        ),
      ])
    }
    if (options.leaderElect) await elector.run({ onStarted: lead, signal })
    else await work(signal)
  } catch (error) {
    if (!signal.aborted) throw error
  } finally {
    queue.shutdown()
    stageQueue.shutdown()
    await recorder.flush(AbortSignal.timeout(flushMs))
    mirroringEnds.abort()
    await mirroring
    await Promise.all([...servers, api, urgentApi, electionApi, stateStore].map(part => part.close()))
  }
}

/** Waits for all, but not for ever: what is missing may never come. */
async function soon(all: readonly Promise<void>[]): Promise<void> {
  const over = new AbortController()
  const late = clock.sleep(memoryPatienceMs, over.signal).catch(() => {})
  await Promise.race([Promise.all(all), late]).finally(() => over.abort())
}

/** Drops what no rule reads and what makes up most of a pod in memory. */
function withoutBallast(pod: Pod): Pod {
  const { managedFields: _, ...metadata } = pod.metadata
  const { nodeName, initContainers, readinessGates } = pod.spec ?? { containers: [] }
  const spec = {
    containers: [],
    ...(nodeName === undefined ? {} : { nodeName }),
    ...(readinessGates ? { readinessGates } : {}),
    ...(initContainers
      ? {
          initContainers: initContainers.map(({ name, restartPolicy }) => ({
            name,
            ...(restartPolicy ? { restartPolicy } : {}),
          })),
        }
      : {}),
  }
  return { ...pod, metadata, spec }
}
