/** Label selectors of objects, evaluated here. `selector.ts` has those of queries. */
import type { V1LabelSelector } from '@kubernetes/client-node'
import type { Wire } from './object.ts'

export type LabelSelector = Wire<V1LabelSelector>
type Requirement = NonNullable<LabelSelector['matchExpressions']>[number]

/** Returns true if an object with these labels is selected. No selector selects none, and an empty one selects all. */
export const isSelected = (
  selector: LabelSelector | undefined,
  labels: Readonly<Record<string, string>> = {},
): boolean =>
  selector !== undefined &&
  Object.entries(selector.matchLabels ?? {}).every(([name, value]) => labels[name] === value) &&
  (selector.matchExpressions ?? []).every(requirement => isMet(requirement, labels))

function isMet(
  { key, operator, values = [] }: Requirement,
  labels: Readonly<Record<string, string>>,
): boolean {
  const value = labels[key]
  switch (operator) {
    case 'In':
      return value !== undefined && values.includes(value)
    case 'NotIn':
      return value === undefined || !values.includes(value)
    case 'Exists':
      return value !== undefined
    case 'DoesNotExist':
      return value === undefined
    default:
      return false
  }
}
