import { isFinished, type MigrationStatus, migrations as migrationResource } from '../api/migration.ts'
import type { Api } from '../kube/api.ts'
import type { Clock } from '../kube/clock.ts'
import { type Controller, type ControllerMetrics, createController } from '../kube/controller.ts'
import { isKubeError } from '../kube/errors.ts'
import type { Log } from '../kube/log.ts'
import { mergePatch } from '../kube/merge-patch.ts'
import type { Queue } from '../kube/queue.ts'
import type { Random } from '../kube/random.ts'
import { type ReconcileContext, type Result, RetryLater } from '../kube/reconcile.ts'
import { createReports } from '../slot/observe/reports.ts'
import { createSince } from '../slot/observe/since.ts'
import type { MigrationBudgets } from './budgets.ts'
import type { MigrationMetrics } from './metrics.ts'
import { decide } from './next.ts'
import { type FollowedStores, observe } from './observe.ts'
import { createPatience } from './patience.ts'
import { createStops } from './stops.ts'
import type { MigrationView } from './view.ts'

export interface MigrationControllerOptions extends FollowedStores {
  readonly api: Pick<Api, 'patch' | 'delete'>
  readonly budgets: MigrationBudgets
  /** True while a list that passes need is not complete. */
  readonly isMissing: () => boolean
  readonly queue: Queue
  readonly metrics: MigrationMetrics
  readonly controllerMetrics?: ControllerMetrics | undefined
  readonly clock: Clock
  readonly random: Random
  readonly log: Log
}

/** One pass decides about all Migrations, because they share budgets. */
const all = 'all'

/** Reports change with each generation, and none of them is urgent, ms. */
const reportsMs = 500

/**
 * Lets Migrations begin, and tells how far they are. The controller of their set moves the slot: it finds or makes the pod that takes it,
 * stops the source, and hands the slot over. So this controller writes nothing but the status of Migrations.
 */
export function createMigrationController(options: MigrationControllerOptions): Controller {
  const { migrations, reports, sets, pods, leases, nodes, queue, clock, isMissing } = options
  const since = createSince(clock)
  const stops = createStops(clock)
  const patience = createPatience(clock)
  const heard = createReports(reports, clock)
  const isAnyOpen = () => migrations.list().some(each => !isFinished(each))
  const look = () => {
    if (isAnyOpen()) queue.add(all)
  }
  migrations.subscribe(() => queue.add(all))
  sets.subscribe(look)
  pods.subscribe(look)
  leases.subscribe(look)
  nodes.subscribe(look)
  reports.subscribe(change => {
    heard.note(change)
    if (isAnyOpen()) queue.add(all, { afterMs: reportsMs })
  })
  const reconcile = async (_: string, { signal, log }: ReconcileContext): Promise<Result> => {
    if (migrations.list().length === 0) return {}
    if (isMissing()) throw new RetryLater(500, 'a list that Migrations need is not complete yet')
    const plan = decide(observe({ ...options, since, stops, patience, heard }), clock.now(), options.budgets)
    const writes = [
      ...plan.statuses.map(({ view, status }) => writeStatus(options, view, status, signal)),
      ...plan.deletions.map(view => remove(options, view, signal)),
    ]
    const results = await Promise.allSettled(writes)
    signal.throwIfAborted()
    for (const { view, status } of plan.statuses)
      log.info({ migration: `${view.namespace}/${view.name}`, phase: status.phase }, 'migration')
    const [error] = results.flatMap(result => (result.status === 'rejected' ? [result.reason] : []))
    return {
      requeueAfterMs: plan.againAfterMs,
      ...(error !== undefined && { error, requeueAfterMs: retryMs }),
    }
  }
  return createController({
    ...{ name: 'migration', queue, reconcile, clock },
    ...{ log: options.log, random: options.random, metrics: options.controllerMetrics },
  })
}

const retryMs = 1_000

type Writer = Pick<MigrationControllerOptions, 'api' | 'metrics'>

/** With the version that the decision is about: a Migration that has changed since is decided about again. */
async function writeStatus(
  { api, metrics }: Writer,
  { namespace, name, resourceVersion, createdAt, status: previous }: MigrationView,
  status: MigrationStatus,
  signal: AbortSignal,
): Promise<void> {
  const body = { metadata: { resourceVersion }, status: mergePatch(previous, status) }
  const options = { subresource: 'status', signal } as const
  const ref = { namespace, name }
  const write = api.patch(migrationResource, ref, { type: 'merge', body }, options)
  const written = await write.catch(unlessGone)
  if (written !== undefined && isFinished({ status })) metrics.ended(status, createdAt)
}

const remove = (
  { api }: Pick<Writer, 'api'>,
  { namespace, name, uid, resourceVersion }: MigrationView,
  signal: AbortSignal,
): Promise<void> =>
  api.delete(migrationResource, { namespace, name }, { uid, resourceVersion }, { signal }).catch(unlessGone)

/** A user may delete a Migration at any time. */
function unlessGone(error: unknown): undefined {
  if (!isKubeError(error, 'NotFound')) throw error
}
