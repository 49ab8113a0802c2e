import { type BackupPodSet, backupPodSets } from '../api/backuppodset.ts'
import { budgetName } from '../api/drain.ts'
import { eventReasons } from '../api/reasons.ts'
import { setsNamedBy } from '../api/set-label.ts'
import type { Api } from '../kube/api.ts'
import type { Clock } from '../kube/clock.ts'
import { type Controller, type ControllerMetrics, createController } from '../kube/controller.ts'
import { isKubeError, messageOf } from '../kube/errors.ts'
import { referenceTo } from '../kube/event-record.ts'
import type { Log } from '../kube/log.ts'
import { type KubeObject, keyOf } from '../kube/object.ts'
import type { Queue } from '../kube/queue.ts'
import type { Random } from '../kube/random.ts'
import { type ReconcileContext, type Result, RetryLater } from '../kube/reconcile.ts'
import type { Recorder } from '../kube/recorder.ts'
import { podDisruptionBudgets } from '../kube/resources.ts'
import type { Change } from '../kube/store.ts'
import { type BudgetAction, budgetAction, budgetObstacle } from './budget.ts'
import { budgetObject } from './budget-object.ts'
import { type BudgetStores, observeBudget } from './budget-observe.ts'
import { movingSet } from './protected-set.ts'

export interface BudgetControllerOptions extends BudgetStores {
  readonly api: Pick<Api, 'create' | 'replace' | 'delete'>
  /** True while a list that passes need is not complete. */
  readonly isMissing: () => boolean
  readonly queue: Queue
  readonly recorder: Recorder
  readonly controllerMetrics?: ControllerMetrics | undefined
  readonly clock: Clock
  readonly random: Random
  readonly log: Log
}

/** Changes of pods come in bursts, and only their labels count, ms. */
const podsMs = 1_000

/**
 * Keeps a disruption budget for the primaries of each set that moves them when a node is drained. The API server applies it also
 * while no operator runs.
 */
export function createBudgetController(options: BudgetControllerOptions): Controller {
  const { sets, pods, leases, budgets, queue, clock } = options
  /** The obstacles that events have told, by the key of the set. */
  const told = new Map<string, string>()
  sets.subscribe(({ type, object }) => {
    if (type === 'deleted') told.delete(keyOf(object))
    queue.add(keyOf(object))
  })
  const ofSet = ({ object, old }: Change<KubeObject>) =>
    new Set([...setsNamedBy(object), ...(old ? setsNamedBy(old) : [])])
  leases.subscribe(change => {
    for (const key of ofSet(change)) queue.add(key)
  })
  pods.subscribe(change => {
    for (const key of ofSet(change)) queue.add(key, { afterMs: podsMs })
  })
  budgets.subscribe(({ object, old, type }) => {
    // Their status changes with each pod.
    if (type !== 'deleted' && old?.metadata.generation === object.metadata.generation && old !== undefined)
      return
    for (const set of sets.list())
      if (set.metadata.namespace === object.metadata.namespace) queue.add(keyOf(set))
  })
  const reconcile = async (key: string, { signal }: ReconcileContext): Promise<Result> => {
    const set = sets.get(key)
    // The garbage collector deletes the budgets of a set with it.
    if (set === undefined || set.metadata.deletionTimestamp !== undefined) return {}
    if (movingSet(set) !== undefined && options.isMissing())
      throw new RetryLater('backoff', 'a list that disruption budgets need is not complete yet')
    const view = observeBudget(options, set)
    const obstacle = budgetObstacle(view)
    if (obstacle !== undefined && obstacle !== told.get(key)) tell(options, set, obstacle)
    if (obstacle === undefined) told.delete(key)
    else told.set(key, obstacle)
    const action = budgetAction(view)
    const isDone = action === undefined || (await perform(options, set, action, signal))
    return isDone ? {} : { requeueAfterMs: podsMs }
  }
  return createController({
    ...{ name: 'budget', queue, reconcile, clock },
    ...{ log: options.log, random: options.random, metrics: options.controllerMetrics },
  })
}

const tell = ({ recorder }: BudgetControllerOptions, set: BackupPodSet, note: string): void =>
  recorder.record({
    ...{ regarding: referenceTo(backupPodSets, set), type: 'Warning', note },
    ...{ reason: eventReasons.budgetAbsent, action: 'Protect' },
  })

/** @returns false if the cache was too old for this write: it is decided about again. */
async function perform(
  options: BudgetControllerOptions,
  set: BackupPodSet,
  action: BudgetAction,
  signal: AbortSignal,
): Promise<boolean> {
  const { api, log } = options
  const { namespace = '', name, uid } = set.metadata
  const ref = { namespace, name: budgetName(name) }
  const { metadata: made, ...rest } = budgetObject({ namespace, name, uid })
  log.info({ set: `${namespace}/${name}`, action: action.type }, 'disruption budget')
  try {
    switch (action.type) {
      case 'create':
        await api.create(podDisruptionBudgets, { ...rest, metadata: made }, { namespace, signal })
        return true
      case 'replace': {
        const body = { ...rest, metadata: { ...made, resourceVersion: action.resourceVersion } }
        await api.replace(podDisruptionBudgets, ref, body, { signal })
        return true
      }
      case 'delete':
        await api.delete(
          podDisruptionBudgets,
          ref,
          { uid: action.uid, resourceVersion: action.resourceVersion },
          { signal },
        )
        return true
      default:
        return action satisfies never
    }
  } catch (error) {
    if (isKubeError(error, 'AlreadyExists', 'Conflict', 'NotFound')) return false
    if (isKubeError(error, 'Forbidden'))
      tell(options, set, `the budget of this set was refused: ${messageOf(error)}`)
    throw error
  }
}
