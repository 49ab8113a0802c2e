import { type BackupPodSet, backupPodSets } from '../api/backuppodset.ts'
import { budgetName } from '../api/drain.ts'
import { labels } from '../api/labels.ts'
import { kindLabelOf, kindLabels } from '../api/pod-kind.ts'
import { bySet } from '../api/set-label.ts'
import { isSelected } from '../kube/label-selector.ts'
import { keyOf, keyOfRef } from '../kube/object.ts'
import { controllerOf } from '../kube/owner.ts'
import type { Lease, Pod, PodDisruptionBudget } from '../kube/resources.ts'
import type { Store } from '../kube/store.ts'
import type { BudgetView, Own } from './budget.ts'
import { isAsMade } from './budget-object.ts'
import { protectedSet } from './protected-set.ts'

export interface BudgetStores {
  readonly sets: Store<BackupPodSet>
  readonly pods: Store<Pod>
  readonly leases: Store<Lease>
  readonly budgets: Store<PodDisruptionBudget>
}

/** Index of budgets by their namespace. */
export const byNamespace = 'namespace'
export const budgetIndexes: Readonly<Record<string, (budget: PodDisruptionBudget) => readonly string[]>> = {
  [byNamespace]: ({ metadata }) => [metadata.namespace ?? ''],
}

/** Returns what the caches show about the budget of a set. */
export function observeBudget({ leases, pods, budgets }: BudgetStores, set: BackupPodSet): BudgetView {
  const { namespace = '', name } = set.metadata
  const present = pods
    .by(bySet, keyOf(set))
    .filter(pod => kindLabelOf(pod) === 'primary')
    .map(({ metadata }) => metadata.labels)
  // Also a pod that is still to be made, so that the first one has its budget from the start.
  const coming = { ...set.spec.template.metadata?.labels, ...kindLabels('primary'), [labels.set]: name }
  const other = budgets
    .by(byNamespace, namespace)
    .find(
      each =>
        !isOfSet(each, name) && [...present, coming].some(marks => isSelected(each.spec?.selector, marks)),
    )
  return {
    isProtected: protectedSet(leases, set) !== undefined,
    own: ownIn(budgets.get(keyOfRef({ namespace, name: budgetName(name) })), set),
    other: other?.metadata.name,
  }
}

function ownIn(budget: PodDisruptionBudget | undefined, set: BackupPodSet): Own {
  const { name, uid: setUid } = set.metadata
  if (budget === undefined) return { type: 'absent' }
  if (!isOfSet(budget, name)) return { type: 'taken' }
  const owner = controllerOf(budget)
  if (owner !== undefined && owner.uid !== setUid) return { type: 'leftover' }
  const { uid, resourceVersion } = budget.metadata
  // One without an owner was orphaned with the pods of an earlier set of this name. It gets an owner again.
  const isRight = owner !== undefined && isAsMade(budget.spec, name)
  return { type: 'present', uid, resourceVersion, isRight }
}

/** True if the operator has made the budget for a set of this name. A budget with another name is never one of those. */
function isOfSet(budget: PodDisruptionBudget, set: string): boolean {
  const { name, labels: marks } = budget.metadata
  const owner = controllerOf(budget)
  return (
    name === budgetName(set) &&
    (owner === undefined ? marks?.[labels.set] === set : owner.kind === backupPodSets.kind)
  )
}
