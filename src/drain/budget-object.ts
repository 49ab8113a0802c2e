/** The disruption budget of a set's primaries: its name, and its object. */
import { backupPodSets } from '../api/backuppodset.ts'
import { budgetName } from '../api/drain.ts'
import { labels } from '../api/labels.ts'
import { isEqual } from '../kube/equal.ts'
import { ownerReference } from '../kube/owner.ts'
import { apiVersionOf, type PodDisruptionBudget, podDisruptionBudgets } from '../kube/resources.ts'

/**
 * More than any set has. `maxUnavailable: 0` would allow an eviction while a set has more primaries than its scale says: for a moment
 * in each handover, and until a smaller set has lost one.
 */
const more = 2 ** 31 - 1

/**
 * Returns the spec of the budget, which allows no eviction. Unready primaries may not be evicted either: one that is stopped to be
 * saved, or fenced, still has its memory.
 */
export const budgetSpec = (set: string) => ({
  selector: { matchLabels: { [labels.set]: set, [labels.type]: 'primary' } },
  ...{ minAvailable: more, unhealthyPodEvictionPolicy: 'IfHealthyBudget' },
})

/** True if no field of the spec was changed by hand. */
export const isAsMade = (spec: PodDisruptionBudget['spec'], set: string): boolean =>
  isEqual(spec, budgetSpec(set))

interface BudgetOwner {
  readonly namespace: string
  readonly name: string
  readonly uid: string
}

/** Returns the whole object, without a resource version. */
export const budgetObject = ({ namespace, name, uid }: BudgetOwner) => ({
  apiVersion: apiVersionOf(podDisruptionBudgets),
  kind: podDisruptionBudgets.kind,
  metadata: {
    ...{ namespace, name: budgetName(name) },
    labels: { [labels.set]: name },
    ownerReferences: [ownerReference(backupPodSets, { name, uid })],
  },
  spec: budgetSpec(name),
})
