import { hostname } from 'node:os'
import type { Logger } from 'pino'
import { operatorElection } from '../api/election.ts'
import { failurePauses } from '../backuppodset/action-retries.ts'
import { createSetController } from '../backuppodset/controller.ts'
import { createSetMetrics } from '../backuppodset/metrics.ts'
import { createNamedSets } from '../backuppodset/named-sets.ts'
import { createPullMetrics } from '../backuppodset/pulled/metrics.ts'
import { laneOf, seriesOf } from '../backuppodset/set-events.ts'
import { wakeKeyId } from '../backuppodset/wake/token.ts'
import { loadWakeKeys } from '../backuppodset/wake-key.ts'
import { createApi } from '../kube/api.ts'
import { createBackoff } from '../kube/backoff.ts'
import { systemClock as clock, elapses } from '../kube/clock.ts'
import { loadConnection } from '../kube/connection.ts'
import { createConsistencyStore } from '../kube/consistency.ts'
import { createElector } from '../kube/election.ts'
import { isKubeError } from '../kube/errors.ts'
import { fenced } from '../kube/fence.ts'
import { freshen } from '../kube/freshen.ts'
import {
  type Check,
  createHealthServer,
  createMetricsServer,
  eventLoopCheck,
  freshCheck,
  openAll,
  queueCheck,
  syncedCheck,
} from '../kube/health.ts'
import { keepWarm } from '../kube/keep-warm.ts'
import { createMetrics, type Metrics } from '../kube/metrics.ts'
import { createQueue } from '../kube/queue.ts'
import { systemRandom as random } from '../kube/random.ts'
import { createRecorder } from '../kube/recorder.ts'
import type { Reflector } from '../kube/reflector.ts'
import { createStateStoreMetrics } from '../state-store/metrics.ts'
import { openStateStore } from '../state-store/open.ts'
import { createWriteBehind } from '../state-store/write-behind.ts'
import { createCaches } from './caches.ts'
import { keepGenerationsKey } from './generations-key.ts'
import type { OperatorOptions } from './options.ts'
import { createStageController } from './stage-label.ts'

/** A healthy process answers within this time; a slower one hangs and must be restarted. */
const eventLoopLimitMs = 10_000
/**
 * Longer than any pass: a pass ends after some batches, does not wait for wakeupTimeout, and its requests have
 * deadlines of their own.
 */
const passLimitMs = 300_000
/** Bookmarks arrive about every minute, and a watch without a byte times out after a minute and a half. */
const newsLimitMs = 120_000
/** Time that the start of a term may take: initially, and at most, if no candidate has been fast enough. */
const freshMs = 5_000
const freshLimitMs = 60_000
const flushMs = 2_000
/** How long a candidate waits for the caches that only sets with memory need. */
const memoryPatienceMs = 3_000
/** Connections kept open for the burst after a failure: one for each creation of a first batch, and for conversions. */
const warm = { bulk: 8, urgent: 8 } as const

/** Inputs of the probes, once available. */
interface Checks {
  readonly queue: Check
  readonly caches: Check
  readonly news: Check
}

/**
 * Runs the operator until the signal fires. Its caches are filled whether it leads or not, so that a standby can take
 * over at once. If the API server is down, it waits: it is then alive but not ready.
 * @throws Error if the configured cluster cannot be reached, or a port is in use.
 */
export async function runOperator(
  options: OperatorOptions,
  log: Logger,
  version: string,
  signal: AbortSignal,
): Promise<void> {
  const metrics = createMetrics()
  using eventLoop = eventLoopCheck(eventLoopLimitMs)
  let checks: Checks | undefined
  const servers = await openAll([
    createHealthServer({
      port: options.healthPort,
      live: { eventloop: eventLoop, queue: () => checks?.queue() },
      ready: {
        caches: () => (checks ? checks.caches() : 'the API server has not answered yet'),
        news: () => checks?.news(),
      },
      clock,
      log,
    }),
    createMetricsServer({ port: options.metricsPort, registry: metrics.registry, log }),
  ])
  try {
    await operate({ options, log, version, metrics, started: all => (checks = all) }, signal)
  } finally {
    await Promise.all(servers.map(server => server.close()))
  }
}

interface Surroundings {
  readonly options: OperatorOptions
  readonly log: Logger
  readonly version: string
  readonly metrics: Metrics
  readonly started: (checks: Checks) => void
}

async function operate(
  { options, log, version, metrics, started }: Surroundings,
  signal: AbortSignal,
): Promise<void> {
  const connection = await loadConnection({ kubeconfig: options.kubeconfig })
  const shared = { connection, metrics: metrics.api, userAgent: `understudy-operator/${version}`, log }
  const api = createApi({ ...shared, connections: options.connections })
  const urgentApi = createApi({ ...shared, connections: warm.urgent })
  // It sends three requests a second, so it notices first that the API server is back.
  const electionApi = createApi({
    ...shared,
    connections: 1,
    onReachable: () => {
      for (const reflector of mirrors) reflector.kick()
    },
  })
  const wakeKeys = await whenReachable(
    () => loadWakeKeys(api, options.namespace, random, signal),
    log,
    signal,
  )
  if (wakeKeys === undefined) return
  log.info({ ids: wakeKeys.map(wakeKeyId) }, 'loaded the keys of cold backups; the first is for new ones')
  const settings = { wakerImage: options.wakerImage, injected: options.injectedResources, wakeKeys }

  const stateStore = await openStateStore(options, settings.wakeKeys, { clock, log, random })
  const writeBehind = createWriteBehind(stateStore, {
    clock,
    log,
    metrics: createStateStoreMetrics(metrics.registry),
  })

  const caches = createCaches({ api, clock, random, log, metrics: metrics.reflector }, options)
  const { sets, pods, ...stores } = caches.stores
  const mirrors: readonly Reflector[] = Object.values(caches.all)
  const mayWrite = () => !options.leaderElect || elector.isLeader()
  const leaderApi = fenced(api, mayWrite)
  const consistency = createConsistencyStore({
    cache: caches.written,
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
    seriesOf,
    laneOf,
    component: 'understudy-operator',
    instance: hostname(),
    clock,
    log,
    metrics: metrics.recorder,
  })
  const named = createNamedSets()
  const controller = createSetController({
    api: leaderApi,
    urgentApi: fenced(urgentApi, mayWrite),
    mayWrite,
    reign: () => elector.reign(),
    sets,
    pods,
    ...stores,
    revisionsKnown: () => caches.all.revisions.hasSynced(),
    instance: hostname(),
    missingForMemory: caches.missingForMemory,
    consistency,
    queue,
    recorder,
    settings,
    metrics: createSetMetrics(metrics.registry, named),
    pullMetrics: createPullMetrics(metrics.registry, named),
    stateStore: writeBehind,
    stateBudget: options.stateBudget,
    controllerMetrics: metrics.controller,
    workers: options.workers,
    clock,
    random,
    log,
  })
  const stageQueue = createQueue({ clock, name: 'stage', metrics: metrics.queue, random })
  const stageController = createStageController({
    api: leaderApi,
    reports: stores.reports,
    nodes: stores.nodes,
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

  started({
    queue: queueCheck(queue, passLimitMs),
    caches: syncedCheck(caches.inUse),
    news: freshCheck(caches.inUse, newsLimitMs),
  })
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
    await Promise.all(Object.values(caches.reflectors).map(reflector => reflector.synced(signal)))
    await soon(Object.values(caches.forMemory).map(reflector => reflector.synced(signal)))
    let givenBack = 0
    const lead = async (stop: AbortSignal, lost: AbortSignal) => {
      // A cache that has never been complete needs no check: its list will be newer than this moment.
      const known = Object.entries(caches.all).filter(([, cache]) => cache.hasSynced())
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
            namespace: options.agentNamespace,
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
    recorder.close()
    mirroringEnds.abort()
    await mirroring
    await Promise.all([controller, api, urgentApi, electionApi, stateStore].map(part => part.close()))
  }
}

/** Retries until the API server answers. @returns undefined if the signal fires first. @throws any other error. */
async function whenReachable<T>(
  ask: () => Promise<T>,
  log: Logger,
  signal: AbortSignal,
): Promise<T | undefined> {
  const pauses = createBackoff({ initialMs: 500, maxMs: 5_000 }, random)
  while (!signal.aborted)
    try {
      return await ask()
    } catch (error) {
      if (signal.aborted) break
      if (!isKubeError(error, 'Unavailable', 'Timeout', 'Throttled')) throw error
      log.warn({ err: error }, 'the API server does not answer yet')
      await elapses(clock, pauses.next(), signal)
    }
  return undefined
}

/** Waits for all, but not forever: some may never complete. */
async function soon(all: readonly Promise<void>[]): Promise<void> {
  const over = new AbortController()
  const late = clock.sleep(memoryPatienceMs, over.signal).catch(() => {})
  await Promise.race([Promise.all(all), late]).finally(() => over.abort())
}
