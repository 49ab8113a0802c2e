import { type BackupPodSet, backupPodSets } from '../api/backuppodset.ts'
import { labels } from '../api/labels.ts'
import { kindLabelOf, kindLabels } from '../api/pod-kind.ts'
import { bySet } from '../api/set-label.ts'
import type { Clock } from '../kube/clock.ts'
import { isSelected } from '../kube/label-selector.ts'
import { keyOf, keyOfRef } from '../kube/object.ts'
import { controllerOf } from '../kube/owner.ts'
import type { Lease, Pod, PodDisruptionBudget } from '../kube/resources.ts'
import type { Store } from '../kube/store.ts'
import type { Since } from '../slot/observe/since.ts'
import type { BudgetView, Existing } from './budget.ts'
import { type BudgetKind, budgetKinds, budgetName, ruleIn } from './budget-names.ts'
import { protectedSet } from './protected-set.ts'

export interface BudgetStores {
  readonly sets: Store<BackupPodSet>
  readonly pods: Store<Pod>
  readonly leases: Store<Lease>
  readonly budgets: Store<PodDisruptionBudget>
}

export interface BudgetDeps extends BudgetStores {
  readonly clock: Pick<Clock, 'monotonic'>
  /** Since when the set has fewer hot backups that are ready than it is to have. */
  readonly since: Pick<Since, 'pass'>
}

/** Index of budgets by their namespace. */
export const byNamespace = 'namespace'
export const budgetIndexes: Readonly<Record<string, (budget: PodDisruptionBudget) => readonly string[]>> = {
  [byNamespace]: ({ metadata }) => [metadata.namespace ?? ''],
}

/** Returns what the caches show about the budgets of a set. */
export function observeBudgets(deps: BudgetDeps, object: BackupPodSet): BudgetView {
  const set = protectedSet(deps.leases, object)
  const hotBackups = set?.set.hotBackups ?? 0
  const readyHotBackups = deps.pods.by(bySet, keyOf(object)).filter(isReadyHotBackup).length
  const shortSince = deps.since.pass()('short', readyHotBackups < hotBackups)
  return {
    isProtected: set !== undefined,
    hotBackups,
    readyHotBackups,
    shortForMs: shortSince === undefined ? undefined : deps.clock.monotonic() - shortSince,
    budgets: { primary: existing(deps, object, 'primary'), hotbackup: existing(deps, object, 'hotbackup') },
  }
}

const isReadyHotBackup = (pod: Pod): boolean =>
  kindLabelOf(pod) === 'hotbackup' &&
  pod.metadata.deletionTimestamp === undefined &&
  pod.status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True') === true

function existing(deps: BudgetDeps, set: BackupPodSet, kind: BudgetKind): Existing {
  const { namespace = '', name } = set.metadata
  const budget = deps.budgets.get(keyOfRef({ namespace, name: budgetName(name, kind) }))
  const present = deps.pods
    .by(bySet, keyOf(set))
    .filter(pod => kindLabelOf(pod) === kind)
    .map(({ metadata }) => metadata.labels)
  // Also a pod that is still to be made, so that the first one has its budget from the start.
  const coming = { ...set.spec.template.metadata?.labels, ...kindLabels(kind), [labels.set]: name }
  const other = deps.budgets
    .by(byNamespace, namespace)
    .find(
      each =>
        !isOfSet(each, name) && [...present, coming].some(marks => isSelected(each.spec?.selector, marks)),
    )
  return { own: ownIn(budget, set, kind), other: other?.metadata.name }
}

function ownIn(
  budget: PodDisruptionBudget | undefined,
  set: BackupPodSet,
  kind: BudgetKind,
): Existing['own'] {
  const { name, uid: setUid } = set.metadata
  if (budget === undefined) return { type: 'absent' }
  if (!isOfSet(budget, name)) return { type: 'taken' }
  const owner = controllerOf(budget)
  if (owner !== undefined && owner.uid !== setUid) return { type: 'leftover' }
  const { uid, resourceVersion } = budget.metadata
  // One without an owner was orphaned with the pods of an earlier set of this name. It gets an owner again.
  const rule = owner && ruleIn(budget.spec, name, kind)
  return { type: 'present', uid, resourceVersion, rule }
}

/** True if the operator has made the budget for a set of this name. A budget with another name is never one of those. */
function isOfSet(budget: PodDisruptionBudget, set: string): boolean {
  const { name, labels: marks } = budget.metadata
  const owner = controllerOf(budget)
  return (
    budgetKinds.some(kind => budgetName(set, kind) === name) &&
    (owner === undefined ? marks?.[labels.set] === set : owner.kind === backupPodSets.kind)
  )
}
