import { type Condition, limits } from '../api/backuppodset.ts'
import { cutTo } from '../kube/object.ts'

/**
 * Sets a condition in a list and keeps the list's order. `lastTransitionTime` changes only when the status does. It is
 * in whole seconds, so that two passes within one second write the same value.
 */
export function setCondition(
  conditions: readonly Condition[],
  { now, ...next }: Omit<Condition, 'lastTransitionTime'> & { readonly now: number },
): readonly Condition[] {
  const old = conditions.find(({ type }) => type === next.type)
  const lastTransitionTime =
    old?.status === next.status ? old.lastTransitionTime : new Date(now).toISOString().replace(/\.\d+Z$/, 'Z')
  // Both may contain text from agents or the API server. The API server would reject a status with an overlong one.
  const reason = cutTo(next.reason, limits.conditionReason)
  const message = cutTo(next.message, limits.conditionMessage)
  const condition: Condition = { ...next, reason, message, lastTransitionTime }
  return old === undefined
    ? [...conditions, condition]
    : conditions.map(other => (other === old ? condition : other))
}
