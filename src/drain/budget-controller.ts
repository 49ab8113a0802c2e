import { type BackupPodSet, backupPodSets } from '../api/backuppodset.ts'
import { eventReasons } from '../api/reasons.ts'
import { setsNamedBy } from '../api/set-label.ts'
import type { Api } from '../kube/api.ts'
import type { Clock } from '../kube/clock.ts'
import { type Controller, type ControllerMetrics, createController } from '../kube/controller.ts'
import { isKubeError } from '../kube/errors.ts'
import { referenceTo } from '../kube/event-record.ts'
import type { Log } from '../kube/log.ts'
import { type KubeObject, keyOf } from '../kube/object.ts'
import type { Queue } from '../kube/queue.ts'
import type { Random } from '../kube/random.ts'
import { type ReconcileContext, type Result, RetryLater } from '../kube/reconcile.ts'
import type { Recorder } from '../kube/recorder.ts'
import { podDisruptionBudgets } from '../kube/resources.ts'
import type { Change } from '../kube/store.ts'
import { createSince, type Since } from '../slot/observe/since.ts'
import { type BudgetAction, budgetAction, budgetObstacle, shortMs } from './budget.ts'
import { type BudgetKind, budgetKinds, budgetName, budgetObject } from './budget-names.ts'
import { type BudgetStores, observeBudgets } from './budget-observe.ts'
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

/** Changes of pods come in bursts, and no budget is that urgent, ms. */
const podsMs = 1_000

/** Facts about one set that outlive a pass of this process. */
interface Kept {
  readonly since: Since
  /** The obstacles that events have told. */
  told: string
}

/**
 * Keeps a disruption budget for the primaries, and one for the hot backups, of each set that moves its primaries when a node is
 * drained. The API server applies it also while no operator runs.
 */
export function createBudgetController(options: BudgetControllerOptions): Controller {
  const { sets, pods, leases, budgets, queue, clock } = options
  const kept = new Map<string, Kept>()
  sets.subscribe(({ type, object }) => {
    if (type === 'deleted') kept.delete(keyOf(object))
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
  const keptOf = (key: string): Kept => {
    const known = kept.get(key) ?? { since: createSince(clock), told: '' }
    kept.set(key, known)
    return known
  }
  const reconcile = async (key: string, { signal }: ReconcileContext): Promise<Result> => {
    const set = sets.get(key)
    // The garbage collector deletes the budgets of a set with it.
    if (set === undefined || set.metadata.deletionTimestamp !== undefined) return {}
    if (movingSet(set) !== undefined && options.isMissing())
      throw new RetryLater('backoff', 'a list that disruption budgets need is not complete yet')
    const { since, told } = keptOf(key)
    const view = observeBudgets({ ...options, since }, set)
    const words = budgetKinds.map(kind => budgetObstacle(view, kind) ?? '').filter(Boolean)
    if (words.join() !== told) {
      keptOf(key).told = words.join()
      for (const note of words) tell(options, set, note)
    }
    let isLate = false
    for (const kind of budgetKinds) {
      const action = budgetAction(view, kind)
      if (action !== undefined && !(await perform(options, set, kind, action, signal))) isLate = true
    }
    if (isLate) return { requeueAfterMs: podsMs }
    return view.shortForMs !== undefined && view.shortForMs < shortMs
      ? { requeueAfterMs: shortMs - view.shortForMs }
      : {}
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
  { api, log }: BudgetControllerOptions,
  { metadata }: BackupPodSet,
  kind: BudgetKind,
  action: BudgetAction,
  signal: AbortSignal,
): Promise<boolean> {
  const { namespace = '', name, uid } = metadata
  const ref = { namespace, name: budgetName(name, kind) }
  log.info({ set: `${namespace}/${name}`, kind, action: action.type }, 'disruption budget')
  try {
    switch (action.type) {
      case 'create':
        await api.create(podDisruptionBudgets, budgetObject({ namespace, name, uid }, kind, action.rule), {
          ...{ namespace, signal },
        })
        return true
      case 'replace': {
        const { metadata: made, ...body } = budgetObject({ namespace, name, uid }, kind, action.rule)
        const { resourceVersion } = action
        await api.replace(
          podDisruptionBudgets,
          ref,
          { ...body, metadata: { ...made, resourceVersion } },
          { signal },
        )
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
    if (!isKubeError(error, 'AlreadyExists', 'Conflict', 'NotFound')) throw error
    return false
  }
}
