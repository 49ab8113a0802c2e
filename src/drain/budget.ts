/** Whether a set has a disruption budget of its own. Pure. */

/** A set, as far as its budget depends on it. */
export interface BudgetView {
  /** It keeps the memory of a slot, and its primaries are to move when their node is drained. */
  readonly isProtected: boolean
  readonly own: Own
  /** Name of a budget that does not belong to a set and selects a primary of this one. */
  readonly other: string | undefined
}

/** The object with the name of the set's budget, as the cache shows it. */
export type Own =
  | { readonly type: 'absent' }
  /** The garbage collector is about to delete it with an earlier set of this name. */
  | { readonly type: 'leftover' }
  /** It does not belong to the set. */
  | { readonly type: 'taken' }
  | {
      readonly type: 'present'
      readonly uid: string
      readonly resourceVersion: string
      /** Its spec and its owner are as the operator makes them. */
      readonly isRight: boolean
    }

export type BudgetAction =
  | { readonly type: 'create' }
  | { readonly type: 'replace'; readonly resourceVersion: string }
  | { readonly type: 'delete'; readonly uid: string; readonly resourceVersion: string }

/** Returns what is to be done about the budget of the set; undefined: nothing. */
export function budgetAction({ isProtected, own, other }: BudgetView): BudgetAction | undefined {
  // The API server refuses every eviction of a pod that two budgets select.
  const isWanted = isProtected && other === undefined
  switch (own.type) {
    case 'absent':
      return isWanted ? { type: 'create' } : undefined
    case 'leftover':
    case 'taken':
      return undefined
    case 'present': {
      const { uid, resourceVersion, isRight } = own
      if (!isWanted) return { type: 'delete', uid, resourceVersion }
      return isRight ? undefined : { type: 'replace', resourceVersion }
    }
    default:
      return own satisfies never
  }
}

/** Returns why a set that is protected has no budget of its own; undefined: it has one, or needs none. */
export function budgetObstacle({ isProtected, own, other }: BudgetView): string | undefined {
  if (!isProtected) return undefined
  if (other !== undefined)
    return `PodDisruptionBudget ${other} selects primaries of this set, so the set has no budget of its own: two would make every eviction fail. While ${other} allows an eviction, a drain does not wait until a primary has moved`
  return own.type === 'taken'
    ? 'a PodDisruptionBudget has the name of the budget of this set, and does not belong to it: rename it'
    : undefined
}
