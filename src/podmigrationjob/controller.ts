import type { BackupPodSet } from '../api/backuppodset.ts'
import type { Migration } from '../api/migration.ts'
import { type MigrationControllerArgs, parseArgs } from '../api/migration-controller-args.ts'
import type { JobPhase, PodMigrationJob } from '../api/pod-migration-job.ts'
import type { Reservation } from '../api/reservation.ts'
import { linkedTo } from '../kube/abort.ts'
import type { Api } from '../kube/api-types.ts'
import type { Cache } from '../kube/cache-set.ts'
import type { Clock } from '../kube/clock.ts'
import { type Controller, type ControllerMetrics, createController } from '../kube/controller.ts'
import { isKubeError } from '../kube/errors.ts'
import type { Log } from '../kube/log.ts'
import type { Queue } from '../kube/queue.ts'
import type { Random } from '../kube/random.ts'
import { type Result, RetryLater } from '../kube/reconcile.ts'
import type { Store } from '../kube/store.ts'
import { createSince } from '../slot/observe/since.ts'
import { perform } from './act/perform.ts'
import type { Performer } from './act/performer.ts'
import { createRequests } from './act/requests.ts'
import { performReservation, writeReservation } from './act/reservation.ts'
import { createTokens } from './act/tokens.ts'
import { createWriter, isAnyOpen } from './act/write-status.ts'
import { decide, type Plan } from './decide/next.ts'
import type { JobView } from './decide/view.ts'
import { createRoomOf, type RoomOf } from './observe/claims.ts'
import { configIn } from './observe/config.ts'
import { createKnown } from './observe/known.ts'
import { observe } from './observe/observe.ts'
import { openWorld, type WorldCaches } from './observe/world-caches.ts'
import type { JobMetrics } from './report/metrics.ts'

export interface JobControllerOptions {
  readonly api: Pick<Api, 'get' | 'list' | 'watch' | 'create' | 'patch' | 'delete' | 'request'>
  readonly jobs: Cache<PodMigrationJob>
  /** Jobs in Koordinator's group. */
  readonly koordinatorJobs: Cache<PodMigrationJob>
  readonly reservations: Cache<Reservation>
  /** Reservations in Koordinator's group. */
  readonly koordinatorReservations: Cache<Reservation>
  readonly sets: Store<BackupPodSet>
  readonly migrations: Store<Migration> & Pick<Cache<Migration>, 'hasSynced'>
  /** The operator's own namespace, with the configuration. */
  readonly namespace: string
  readonly queue: Queue
  readonly controllerMetrics?: ControllerMetrics | undefined
  readonly metrics: JobMetrics
  readonly clock: Clock
  readonly random: Random
  readonly log: Log
}

/** One pass judges all jobs, because they share budgets. */
const all = 'all'

const retryMs = 1_000

/** Pause until a cache may have become complete, ms. */
const incompleteMs = 200

/** Pause while the API server refuses a list, ms. */
const forbiddenMs = 5_000

/** How often pods that give way are looked for. */
const lookRate = { perSecond: 1, burst: 1 } as const

/** Knowledge of one term of leadership. The next term begins without it. */
interface Term {
  readonly writer: ReturnType<typeof createWriter>
  readonly world: WorldCaches
  readonly roomOf: RoomOf
}

/** Arbitrates PodMigrationJobs, and carries out those that it admits. */
export function createJobController(options: JobControllerOptions): Controller {
  const { queue, clock, log, random, jobs, api, metrics } = options
  const since = createSince(clock)
  const evictions = createTokens(clock)
  const flow = createTokens(clock)
  const requests = createRequests(clock)
  const looks = createTokens(clock)
  let defaults = argsOf(parseArgs({}))
  let signalOfTerm: AbortSignal | undefined
  let term: Term | undefined
  // While all jobs have ended, no change of a pod matters.
  let isBusy = true
  const look = () => queue.add(all, { afterMs: defaults.arbitrationIntervalMs })
  const watched = [jobs, options.koordinatorJobs, options.reservations, options.koordinatorReservations]
  for (const store of [...watched, options.migrations]) store.subscribe(look)

  const beginTerm = (signal: AbortSignal): Term => {
    const world = openWorld(options, signal)
    isBusy = true
    world.subscribe(() => {
      if (isBusy) look()
    })
    return { world, writer: createWriter(api), roomOf: createRoomOf() }
  }
  const known = createKnown(options)

  const reconcile = async (_: string, { signal }: { readonly signal: AbortSignal }): Promise<Result> => {
    const { jobs: listed, reservations: listedReservations } = await known(signal)
    const isAnythingOpen = isAnyOpen(listed, listedReservations)
    if (listed.length + listedReservations.length === 0 || signalOfTerm === undefined) return {}
    if (term === undefined && !isAnythingOpen) return {}
    term ??= beginTerm(signalOfTerm)
    const { world, writer, roomOf } = term
    const [missing] = world.missing()
    if (missing?.why !== undefined) {
      const error = new Error(`jobs wait for the list of ${missing.resource}: ${missing.why}`)
      return { error, requeueAfterMs: forbiddenMs }
    }
    if (missing !== undefined || !options.migrations.hasSynced())
      throw new RetryLater(incompleteMs, 'a list that jobs need is not complete yet')
    await writer.settle(signal)
    const config = configIn(world.stores.configMaps, options.namespace)
    if (config.ok) defaults = config.args
    const deps = { ...options, world: world.stores, since, clock, requests, roomOf }
    const begun = clock.monotonic()
    const merged = writer.merged(listed)
    const { views, reservations, world: facts } = observe(merged, listedReservations, defaults, deps)
    const { flowControl } = defaults
    const tokens = flowControl === undefined ? Number.POSITIVE_INFINITY : flow.available(flowControl)
    const mayLook = looks.available(lookRate) > 0
    const around = { world: facts, reservations, config, now: clock.now(), tokens, mayLook }
    const plan = decide(views, around)
    if (mayLook) looks.take(plan.looks)
    metrics.arbitrated((clock.monotonic() - begun) / 1000)
    metrics.jobs(byPhase(views), plan.waiting)
    isBusy = isAnythingOpen
    requests.keep(new Set(views.map(({ uid }) => uid)))
    if (flowControl !== undefined) flow.take(plan.admitted)
    const performer: Performer = { api, writer, clock, evictions, requests, noteEviction: metrics.eviction }
    return execute(plan, defaults, performer, { api, signal, log })
  }

  const controller = createController({
    ...{ name: 'podmigrationjob', queue, reconcile, clock, log, random },
    metrics: options.controllerMetrics,
  })
  return {
    async run(stop, abort) {
      const ends = linkedTo(stop)
      signalOfTerm = ends.signal
      queue.add(all)
      try {
        await controller.run(stop, abort)
      } finally {
        ends.abort(new Error('the term is over'))
        await term?.world.ended
        term = undefined
        signalOfTerm = undefined
      }
    },
  }
}

const argsOf = (parsed: ReturnType<typeof parseArgs>): MigrationControllerArgs => {
  if (!parsed.ok) throw new Error(parsed.message)
  return parsed.args
}

function byPhase(views: readonly JobView[]): ReadonlyMap<JobPhase, number> {
  const counts = new Map<JobPhase, number>()
  for (const { status } of views) {
    const phase = status.phase ?? 'Pending'
    counts.set(phase, (counts.get(phase) ?? 0) + 1)
  }
  return counts
}

/** Writes the statuses first: an act is done only if an earlier pass has announced it. */
async function execute(
  { statuses, actions, deletions, reservations, againAfterMs }: Plan,
  args: MigrationControllerArgs,
  performer: Performer,
  { api, signal, log }: Pick<JobControllerOptions, 'api' | 'log'> & { readonly signal: AbortSignal },
): Promise<Result> {
  const written = await Promise.allSettled([
    ...statuses.map(({ view, status }) => performer.writer.write(view, status, signal)),
    ...deletions.map(view => remove(api, view, signal)),
    ...reservations.statuses.map(each => writeReservation(api, each, signal)),
  ])
  signal.throwIfAborted()
  for (const { view, status } of statuses)
    if (status.phase !== 'Pending')
      log.info({ job: view.key, phase: status.phase, reason: status.reason }, 'job')
  const acted = await Promise.allSettled([
    perform(actions, args, performer, signal),
    ...reservations.actions.map(action => performReservation(action, performer, signal)),
  ])
  signal.throwIfAborted()
  const [error] = [...written, ...acted].flatMap(result =>
    result.status === 'rejected' ? [result.reason] : [],
  )
  const [result] = acted
  const evictAfterMs = result?.status === 'fulfilled' ? (result.value ?? undefined) : undefined
  const isGoingOn = statuses.some(({ status }) => status.phase === 'Running')
  const times = [againAfterMs, evictAfterMs, isGoingOn ? 0 : undefined].filter(ms => ms !== undefined)
  const requeueAfterMs = error === undefined ? (times.length > 0 ? Math.min(...times) : undefined) : retryMs
  return { requeueAfterMs, ...(error !== undefined && { error }) }
}

const remove = (
  api: Pick<Api, 'delete'>,
  { resource, name, uid, resourceVersion }: JobView,
  signal: AbortSignal,
): Promise<void> =>
  api.delete(resource, { name }, { uid, resourceVersion }, { signal }).catch((error: unknown) => {
    if (!isKubeError(error, 'NotFound', 'Conflict')) throw error
  })
