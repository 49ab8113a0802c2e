/** The disruption budgets of a set: which pods they select, and their objects. */
import { backupPodSets } from '../api/backuppodset.ts'
import { labels } from '../api/labels.ts'
import { isEqual } from '../kube/equal.ts'
import { ownerReference } from '../kube/owner.ts'
import { apiVersionOf, type PodDisruptionBudget, podDisruptionBudgets } from '../kube/resources.ts'

/** The kinds of pods with a budget. Cold backups keep nothing that an eviction could lose. */
export const budgetKinds = ['primary', 'hotbackup'] as const
export type BudgetKind = (typeof budgetKinds)[number]

const suffixes: Readonly<Record<BudgetKind, string>> = { primary: 'primaries', hotbackup: 'hotbackups' }

/** `web-primaries`, `web-hotbackups`. */
export const budgetName = (set: string, kind: BudgetKind): string => `${set}-${suffixes[kind]}`

/** How many pods of a kind may be evicted. */
export type BudgetRule =
  /** None. Unready ones neither: a primary that is stopped to be saved, or that is fenced, still has its memory. */
  | { readonly type: 'none' }
  /** As many as leave this number; those that are not ready may always be evicted, because they do not protect any slot. */
  | { readonly type: 'leaves'; readonly healthy: number }

export interface BudgetOwner {
  readonly namespace: string
  readonly name: string
  readonly uid: string
}

/**
 * More than any set has. `maxUnavailable: 0` would allow an eviction while a set has more primaries than its scale says: for a moment
 * in each handover, and until a smaller set has lost one.
 */
const more = 2 ** 31 - 1

/** Returns the spec of the budget, with the fields that the API server adds. */
export const budgetSpec = (set: string, kind: BudgetKind, rule: BudgetRule) => ({
  selector: { matchLabels: { [labels.set]: set, [labels.type]: kind } },
  ...(rule.type === 'none'
    ? { minAvailable: more, unhealthyPodEvictionPolicy: 'IfHealthyBudget' }
    : { minAvailable: rule.healthy, unhealthyPodEvictionPolicy: 'AlwaysAllow' }),
})

/** Returns the whole object, without a resource version. */
export const budgetObject = ({ namespace, name, uid }: BudgetOwner, kind: BudgetKind, rule: BudgetRule) => ({
  apiVersion: apiVersionOf(podDisruptionBudgets),
  kind: podDisruptionBudgets.kind,
  metadata: {
    ...{ namespace, name: budgetName(name, kind) },
    labels: { [labels.set]: name },
    ownerReferences: [ownerReference(backupPodSets, { name, uid })],
  },
  spec: budgetSpec(name, kind, rule),
})

/** Returns the rule that a spec has; undefined: none of ours. */
export function ruleIn(
  spec: PodDisruptionBudget['spec'],
  set: string,
  kind: BudgetKind,
): BudgetRule | undefined {
  const healthy = spec?.minAvailable
  const rule: BudgetRule =
    typeof healthy === 'number' && healthy !== more ? { type: 'leaves', healthy } : { type: 'none' }
  return isEqual(spec, budgetSpec(set, kind, rule)) ? rule : undefined
}
