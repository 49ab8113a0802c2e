/** Conditions of a status. */
import { cutTo } from './object.ts'

/** A condition as Kubernetes' `metav1.Condition`. */
export interface Condition {
  readonly type: string
  readonly status: 'True' | 'False' | 'Unknown'
  readonly reason: string
  readonly message: string
  readonly lastTransitionTime: string
  readonly observedGeneration: number
}

/** The longest texts that `metav1.Condition` allows, in characters. */
export const conditionLimits = { reason: 1024, message: 32_768 } as const

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
  // Both may contain text from others. The API server would reject a status with an overlong one.
  const reason = cutTo(next.reason, conditionLimits.reason)
  const message = cutTo(next.message, conditionLimits.message)
  const condition: Condition = { ...next, reason, message, lastTransitionTime }
  return old === undefined
    ? [...conditions, condition]
    : conditions.map(other => (other === old ? condition : other))
}

/** Pauses between two tries of a write that the API server refuses, ms. */
const pauses = { least: 1_000, most: 300_000 } as const

/**
 * Returns the ms until a refused write is tried again: a quota or the permission of a namespace may have been the reason. It is as long
 * as the condition has told of it, so each pause is twice the one before, also after a restart of this process.
 */
export function refusedPauseMs(
  condition: { readonly lastTransitionTime?: string } | undefined,
  now: number,
): number {
  const since = Date.parse(condition?.lastTransitionTime ?? '')
  return Math.min(pauses.most, Math.max(pauses.least, Number.isNaN(since) ? 0 : now - since))
}
