import { budgetName } from '../../api/drain.ts'
import { labels } from '../../api/labels.ts'
import { isSelected } from '../../kube/label-selector.ts'
import { keyOf } from '../../kube/object.ts'
import type { Pod, PodDisruptionBudget } from '../../kube/resources.ts'
import { leaves } from '../move/leaving.ts'
import { about, type Finding, listed } from './finding.ts'
import type { Installation } from './installation.ts'
import { unreadable } from './unreadable.ts'

const { broken, note } = about('moves')

type Seen = Pick<Installation, 'budgets' | 'primaries' | 'sets'>

/** Finds disruption budgets of others that select primaries whose memory is kept. */
export function budgetsFindings({ budgets, primaries, sets }: Seen): readonly Finding[] {
  if (!primaries.ok || !sets.ok) return []
  const kept = primaries.value.filter(pod => leaves(pod, sets.value))
  if (kept.length === 0) return []
  if (!budgets.ok) return [unreadable('moves', 'disruption budgets', budgets.error)]
  const found = budgets.value.flatMap(budget => {
    const selected = kept.filter(pod => selects(budget, pod))
    const [set] = selected.flatMap(pod => pod.metadata.labels?.[labels.set] ?? [])
    return set === undefined || budget.metadata.name === budgetName(set)
      ? []
      : [ofBudget(budget, selected, budgets.value)]
  })
  return listed(found, 'moves')
}

const selects = ({ metadata, spec }: PodDisruptionBudget, pod: Pod): boolean =>
  metadata.namespace === pod.metadata.namespace && isSelected(spec?.selector, pod.metadata.labels)

function ofBudget(
  budget: PodDisruptionBudget,
  selected: readonly Pod[],
  all: readonly PodDisruptionBudget[],
): Finding {
  const what = `budget ${keyOf(budget)}`
  const names = selected.map(({ metadata }) => metadata.name)
  const who =
    names.length > 3 ? `${names.slice(0, 3).join(', ')} and ${names.length - 3} more` : names.join(', ')
  const cure = `to let the set protect its primaries itself, leave them out: \`{key: ${labels.role}, operator: NotIn, values: [primary]}\` in matchExpressions of its selector`
  const own = selected.map(pod => budgetName(pod.metadata.labels?.[labels.set] ?? ''))
  const twin = all.find(each => own.includes(each.metadata.name) && selected.some(pod => selects(each, pod)))
  return twin !== undefined
    ? broken(
        what,
        `selects ${who}, which the budget ${twin.metadata.name} selects, too: the API server refuses every eviction of a pod with two budgets. The operator removes its own within seconds`,
        `if this stays, see that an operator leads; ${cure}`,
      )
    : note(
        what,
        `selects ${who}: the set has no budget of its own, so a drain waits for a move only while this budget allows no eviction`,
        cure,
      )
}
