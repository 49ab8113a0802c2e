import { backupPodSets } from '../api/backuppodset.ts'
import { annotations, labels } from '../api/labels.ts'
import { migrations as migrationResource } from '../api/migration.ts'
import { eventReasons } from '../api/reasons.ts'
import type { Api } from '../kube/api.ts'
import type { Clock } from '../kube/clock.ts'
import { type Controller, type ControllerMetrics, createController } from '../kube/controller.ts'
import { isKubeError, messageOf } from '../kube/errors.ts'
import type { Log } from '../kube/log.ts'
import { ownerReference } from '../kube/owner.ts'
import type { Queue } from '../kube/queue.ts'
import type { Random } from '../kube/random.ts'
import { type ReconcileContext, type Result, RetryLater } from '../kube/reconcile.ts'
import type { Recorder } from '../kube/recorder.ts'
import { apiVersionOf } from '../kube/resources.ts'
import { type Creation, decideDrain } from './next.ts'
import { type DrainStores, drainedNodes, observeDrain, openDrains } from './observe.ts'
import { createToldWaits, drainWaits, type Told } from './told-waits.ts'
import type { Callable } from './view.ts'

export interface DrainControllerOptions extends DrainStores {
  readonly api: Pick<Api, 'create' | 'delete'>
  /** True while a list that passes need is not complete. */
  readonly isMissing: () => boolean
  readonly queue: Queue
  readonly recorder: Recorder
  readonly controllerMetrics?: ControllerMetrics | undefined
  readonly clock: Clock
  readonly random: Random
  readonly log: Log
}

/** One pass looks at all nodes: their primaries share the budgets of Migrations. */
const all = 'all'

/** Changes of pods come in bursts, ms. */
const burstMs = 300

/** Pause after a write that failed, ms. */
const retryMs = 2_000

/**
 * How long a pod may wait for a node before its Migration fails, and how long the Migration stays after its end, seconds. The
 * next Migration looks at those that have stayed for its pause. While a pod waits, an autoscaler may add a node for it.
 */
const limits = { unschedulableTimeoutSeconds: 180, ttlSecondsAfterFinished: 3_600 } as const

/** A drain looks for a short stop for some generations. It has to end, so it then moves the pod however long that takes. */
const stop = { maxDowntime: '300ms', technique: 'LiveIfPossible' } as const

/** Makes Migrations for the primaries of nodes that are drained, until none of them is left there. */
export function createDrainController(options: DrainControllerOptions): Controller {
  const { migrations, sets, pods, leases, nodes, queue, clock } = options
  const waits = createToldWaits()
  // Pods change all the time, and most of the time no node is drained.
  let isBusy = false
  const look = () => {
    if (isBusy) queue.add(all, { afterMs: burstMs })
  }
  const judge = () => {
    // The uncordoning of a node calls off its Migrations.
    isBusy = drainedNodes(nodes).size > 0 || openDrains(migrations).length > 0
    look()
  }
  for (const store of [nodes, migrations]) store.subscribe(judge)
  for (const store of [sets, pods, leases]) store.subscribe(look)
  const reconcile = async (_: string, { signal }: ReconcileContext): Promise<Result> => {
    if (options.isMissing()) throw new RetryLater('backoff', 'a list that drains need is not complete yet')
    const plan = decideDrain(observeDrain(options), clock.now())
    for (const note of waits.news(plan.waiting, migrations)) tell(options, note)
    const results = await Promise.allSettled([
      ...plan.creations.map(creation => create(options, creation, signal)),
      ...plan.deletions.map(callable => callOff(options, callable, signal)),
    ])
    signal.throwIfAborted()
    const [error] = results.flatMap(result => (result.status === 'rejected' ? [result.reason] : []))
    return {
      requeueAfterMs: plan.againAfterMs,
      ...(error !== undefined && { error, requeueAfterMs: retryMs }),
    }
  }
  return createController({
    ...{ name: 'drain', queue, reconcile, clock },
    ...{ log: options.log, random: options.random, metrics: options.controllerMetrics },
  })
}

/** If the Migration exists already, the cache is about to show it. */
async function create(
  { api, recorder, log }: Pick<DrainControllerOptions, 'api' | 'recorder' | 'log'>,
  { name, primary }: Creation,
  signal: AbortSignal,
): Promise<void> {
  const { namespace, set, node, why, last } = primary
  const body = {
    apiVersion: apiVersionOf(migrationResource),
    kind: migrationResource.kind,
    metadata: {
      ...{ namespace, name },
      labels: { [labels.set]: set.name },
      annotations: { [annotations.drainedNode]: node },
      ownerReferences: [ownerReference(backupPodSets, set)],
    },
    spec: {
      source: { name: primary.name, uid: primary.uid },
      priority: 'SystemCritical',
      ...stop,
      ...limits,
    },
  }
  try {
    await api.create(migrationResource, body, { namespace, signal })
  } catch (error) {
    if (isKubeError(error, 'AlreadyExists')) return
    // A quota, or another policy: nothing else would tell why the drain waits.
    if (isKubeError(error, 'Forbidden', 'Invalid'))
      tell({ recorder }, drainWaits(primary, `Migration ${name} is refused: ${messageOf(error)}`))
    throw error
  }
  log.info({ migration: `${namespace}/${name}`, node, why }, 'drain')
  if (last === undefined)
    tell(
      { recorder },
      {
        ...{ primary, type: 'Normal', reason: eventReasons.draining },
        note: `${primary.name} moves away from node ${node}, because ${why}: Migration ${name}`,
      },
    )
  else
    tell(
      { recorder },
      drainWaits(primary, `${last.reason}: ${last.message}; Migration ${name} is the next try`),
    )
}

function tell({ recorder }: Pick<DrainControllerOptions, 'recorder'>, { primary, ...event }: Told): void {
  const { namespace, set } = primary
  recorder.record({
    regarding: {
      ...{ apiVersion: apiVersionOf(backupPodSets), kind: backupPodSets.kind },
      ...{ namespace, name: set.name, uid: set.uid },
    },
    action: 'Drain',
    ...event,
  })
}

/** With the version that the decision is about: a Migration that has begun to stop its pod meanwhile continues. */
const callOff = (
  { api }: Pick<DrainControllerOptions, 'api'>,
  { namespace, name, uid, resourceVersion }: Callable,
  signal: AbortSignal,
): Promise<void> =>
  api
    .delete(migrationResource, { namespace, name }, { uid, resourceVersion }, { signal })
    .catch((error: unknown) => {
      if (!isKubeError(error, 'NotFound', 'Conflict')) throw error
    })
