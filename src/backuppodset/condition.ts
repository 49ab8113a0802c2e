import { type Condition, limits } from '../api/backuppodset.ts'
import { cutTo } from '../kube/object.ts'

/**
 * Puts a condition into a list, kept in the list's order. `lastTransitionTime` (whole seconds, so that two passes within
 * one second do not differ by it) moves only when the status does.
 */
export function setCondition(
  conditions: readonly Condition[],
  { now, ...next }: Omit<Condition, 'lastTransitionTime'> & { readonly now: number },
): readonly Condition[] {
  const old = conditions.find(({ type }) => type === next.type)
  const lastTransitionTime =
    old?.status === next.status ? old.lastTransitionTime : new Date(now).toISOString().replace(/\.\d+Z$/, 'Z')
  // Words of others, as of agents and the API server, are in both; a status that is refused says nothing at all.
  const reason = cutTo(next.reason, limits.conditionReason)
  const message = cutTo(next.message, limits.conditionMessage)
  const condition: Condition = { ...next, reason, message, lastTransitionTime }
  return old === undefined
    ? [...conditions, condition]
    : conditions.map(other => (other === old ? condition : other))
}
