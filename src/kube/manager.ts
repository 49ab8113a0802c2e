/**
 * Runs an operator: opens its parts, leads, and ends them in the right order.
 *
 *     start: servers, clients, setup, caches and background work, lease, fresh caches, controllers
 *     stop:  controllers, lease, queues, events, caches and background work, clients, servers
 *
 * The caches of a standby are filled, so that it can take over at once. They outlive the work that reads them. A failure
 * at any point ends everything that was begun before it.
 */
import { randomUUID } from 'node:crypto'
import { hostname } from 'node:os'
import { linkedTo } from './abort.ts'
import { createApi } from './api.ts'
import type { Api } from './api-types.ts'
import { type CacheSet, createCacheSet } from './cache-set.ts'
import { type Clock, systemClock } from './clock.ts'
import { loadConnection } from './connection.ts'
import { createElector, type Elector } from './election.ts'
import { fenced } from './fence.ts'
import {
  type Check,
  createHealthServer,
  createMetricsServer,
  eventLoopCheck,
  openAll,
  queueCheck,
} from './health.ts'
import { addController } from './managed-controller.ts'
import type { ClientOptions, Leading, Manager, ManagerOptions } from './manager-types.ts'
import { createMetrics, type Metrics } from './metrics.ts'
import { createQueue, type Queue } from './queue.ts'
import { type Random, systemRandom } from './random.ts'
import { createRecorder, type Recorder } from './recorder.ts'
import { whenReachable } from './when-reachable.ts'

export * from './manager-types.ts'

/** A healthy process answers within this time; a slower one hangs and must be restarted. */
const eventLoopLimitMs = 10_000
/** Bookmarks arrive about every minute, and a watch without a byte times out after a minute and a half. */
const newsLimitMs = 120_000
/** Time that the caches get at the start of a term: initially, and at most, if no candidate has been fast enough. */
const freshMs = 5_000
const freshLimitMs = 60_000
/** Time for the last events. */
const flushMs = 2_000

/** The options, without gaps. */
interface Settings extends ManagerOptions {
  readonly clock: Clock
  readonly random: Random
  readonly metrics: Metrics
  readonly leaderElect: boolean
}

/** Work and parts that the setup has registered. */
interface Registered {
  readonly leading: Leading[]
  readonly background: ((signal: AbortSignal) => Promise<void>)[]
  readonly queues: Queue[]
  readonly recorders: Recorder[]
}

/**
 * Runs an operator until the signal fires.
 * @param setup registers caches, controllers and other work.
 * @throws Error if a port is in use or the kubeconfig is wrong; the errors of `setup` and of the registered work.
 */
export async function runManager(
  options: ManagerOptions,
  setup: (manager: Manager) => Promise<void> | void,
  signal: AbortSignal,
): Promise<void> {
  const settings: Settings = {
    ...options,
    clock: options.clock ?? systemClock,
    random: options.random ?? systemRandom,
    metrics: options.metrics ?? createMetrics(),
    leaderElect: options.leaderElect ?? true,
  }
  const registered: Registered = { leading: [], background: [], queues: [], recorders: [] }
  using ending = linkedTo(signal)
  const failures: unknown[] = []
  const fail = (error: unknown) => {
    failures.push(error)
    ending.abort(error)
  }
  // Whatever is opened is deferred at once, so it is closed in the reverse order, from any point.
  await using opened = new AsyncDisposableStack()
  const known: { caches?: CacheSet } = {}
  await serve(settings, registered.queues, () => known.caches, opened)
  const { manager, elector } = await compose(settings, registered, opened, ending.signal)
  const outlasting = createOutlasting(fail)
  await using working = new AsyncDisposableStack()
  working.defer(outlasting.end)
  working.defer(() => finish(registered))
  try {
    await setup(manager)
    if (registered.leading.length === 0) throw new TypeError('no work: the setup has to add a controller')
    known.caches = manager.caches
    for (const run of [manager.caches.run, ...registered.background]) outlasting.begin(run)
    await manager.caches.awaited(ending.signal)
    if (settings.leaderElect)
      await elector.run({ onStarted: termOf(manager.caches, registered.leading), signal: ending.signal })
    else await runAll(registered.leading, ending.signal, undefined)
  } catch (error) {
    if (!ending.signal.aborted) throw error
  }
  if (failures.length > 0) throw failures[0]
}

/** Opens the servers of probes and metrics. `caches` is undefined until the setup has ended. */
async function serve(
  { healthPort = 8081, metricsPort = 8080, passLimitMs = 300_000, clock, log, metrics }: Settings,
  queues: readonly Queue[],
  caches: () => CacheSet | undefined,
  opened: AsyncDisposableStack,
): Promise<void> {
  const eventloop = opened.use(eventLoopCheck(eventLoopLimitMs))
  const queue: Check = () => queues.map(each => queueCheck(each, passLimitMs)()).find(Boolean)
  const servers = await openAll([
    createHealthServer({
      port: healthPort,
      live: { eventloop, queue },
      ready: {
        caches: () => {
          const all = caches()
          return all ? all.isSynced() : 'the API server has not answered yet'
        },
        news: () => caches()?.isFresh(newsLimitMs)(),
      },
      ...{ clock, log },
    }),
    createMetricsServer({ port: metricsPort, registry: metrics.registry, log }),
  ])
  opened.defer(async () => {
    await Promise.all(servers.map(server => server.close()))
  })
  log.info({ healthPort: servers[0]?.port, metricsPort: servers[1]?.port }, 'listening')
}

/** Opens the clients, and makes the manager that the setup gets. */
async function compose(
  settings: Settings,
  { leading, background, queues, recorders }: Registered,
  opened: AsyncDisposableStack,
  signal: AbortSignal,
): Promise<{ readonly manager: Manager; readonly elector: Elector }> {
  const { name, namespace, lease = name, leaderElect, clock, random, log, metrics } = settings
  const { identity = `${hostname()}_${randomUUID().slice(0, 8)}` } = settings
  const connect = settings.connect ?? (await connectorOf(settings))
  const client = (options: ClientOptions): Api => {
    const api = connect(options)
    opened.defer(() => api.close())
    return api
  }
  const api = client({ connections: settings.connections })
  const caches = createCacheSet({ api, clock, random, log, metrics: metrics.reflector })
  // Its client sends three requests a second, so it notices first that the API server is back.
  const electionApi = client({ connections: 1, onReachable: caches.kick })
  const elector = createElector({
    ...{ api: electionApi, namespace, name: lease, identity },
    ...{ clock, random, log, metrics: metrics.election },
  })
  const election = leaderElect ? elector : { isLeader: () => true, reign: () => undefined }
  const parts: Omit<Manager, 'controller'> = {
    ...{
      api,
      leaderApi: fenced(api, election.isLeader),
      client,
      fenced: other => fenced(other, election.isLeader),
    },
    ...{ caches, cache: caches.cache, election, signal, metrics, clock, random, log },
    recorder(more = {}) {
      const about = { api, component: name, instance: hostname(), metrics: metrics.recorder }
      const recorder = createRecorder({ ...more, ...about, clock, log, random })
      recorders.push(recorder)
      return recorder
    },
    queue(more) {
      const queue = createQueue({ ...more, clock, random, metrics: metrics.queue })
      queues.push(queue)
      return queue
    },
    leading: run => void leading.push(run),
    background: run => void background.push(run),
    defer: close => opened.defer(close),
    whenReachable: ask => whenReachable(ask, { clock, random, log, signal }),
  }
  return { manager: { ...parts, controller: options => addController(parts, options) }, elector }
}

async function connectorOf(settings: Settings): Promise<(options: ClientOptions) => Api> {
  const { name, version = '0', kubeconfig, clock, random, log, metrics } = settings
  const connection = await loadConnection({ kubeconfig })
  const shared = { connection, userAgent: `${name}/${version}`, clock, random, log, metrics: metrics.api }
  return options => createApi({ ...options, ...shared })
}

/** A term begins with fresh caches. Each term that is given back, because they take too long, doubles their time. */
function termOf(caches: CacheSet, leading: readonly Leading[]) {
  let givenBack = 0
  return async (stop: AbortSignal, lost: AbortSignal): Promise<void> => {
    const patienceMs = Math.min(freshLimitMs, freshMs * 2 ** givenBack)
    givenBack += 1
    await caches.freshen(patienceMs, stop)
    givenBack = 0
    await runAll(leading, stop, lost)
  }
}

/** Runs the leader's work. When one part fails, the others stop, too: the lease is released only after all of them. */
async function runAll(
  leading: readonly Leading[],
  stop: AbortSignal,
  lost: AbortSignal | undefined,
): Promise<void> {
  using term = linkedTo(stop)
  const failures: unknown[] = []
  await Promise.all(
    leading.map(async run => {
      try {
        await run(term.signal, lost)
      } catch (error) {
        failures.push(error)
        term.abort(error)
      }
    }),
  )
  if (failures.length > 0) throw failures[0]
}

/** Work that outlasts the leader's: passes may still read caches after the signal has fired. */
function createOutlasting(fail: (error: unknown) => void) {
  const over = new AbortController()
  const running: Promise<void>[] = []
  return {
    begin(run: (signal: AbortSignal) => Promise<void>) {
      running.push(
        run(over.signal).catch(error => {
          if (!over.signal.aborted) fail(error)
        }),
      )
    },
    async end() {
      over.abort()
      await Promise.all(running)
    },
  }
}

async function finish({ queues, recorders }: Registered): Promise<void> {
  for (const queue of queues) queue.shutdown()
  for (const recorder of recorders) {
    await recorder.flush(AbortSignal.timeout(flushMs))
    recorder.close()
  }
}
