/** Which disruption budgets a set has. Pure. */
import { isEqual } from '../kube/equal.ts'
import type { BudgetKind, BudgetRule } from './budget-names.ts'

/** A set, as far as its budgets depend on it. */
export interface BudgetView {
  /** It keeps the memory of a slot, and its primaries are to move when their node is drained. */
  readonly isProtected: boolean
  /** Number of hot backups that it is to have. */
  readonly hotBackups: number
  /** Number of hot backups that are ready. */
  readonly readyHotBackups: number
  /** For how long it has had fewer of them than it is to have, ms; undefined: it has enough. */
  readonly shortForMs: number | undefined
  readonly budgets: Readonly<Record<BudgetKind, Existing>>
}

/** The budget of one kind of pods, as the cache shows it. */
export interface Existing {
  readonly own:
    | { readonly type: 'absent' }
    /** The garbage collector is about to delete it with an earlier set of this name. */
    | { readonly type: 'leftover' }
    /** An object that does not belong to the set has its name. */
    | { readonly type: 'taken' }
    | {
        readonly type: 'present'
        readonly uid: string
        readonly resourceVersion: string
        /** Undefined: its spec was changed by hand. */
        readonly rule: BudgetRule | undefined
      }
  /** Name of a budget that does not belong to a set and selects a pod of this kind. */
  readonly other: string | undefined
}

export type BudgetAction =
  | { readonly type: 'create'; readonly rule: BudgetRule }
  | {
      readonly type: 'replace'
      readonly rule: BudgetRule
      readonly resourceVersion: string
    }
  | { readonly type: 'delete'; readonly uid: string; readonly resourceVersion: string }

/**
 * The budget of hot backups expects fewer of them after this time, ms: a set that cannot have all its backups must not keep a
 * drain waiting for ever.
 */
export const shortMs = 60_000

/** Returns the rule for the pods of a kind; undefined: they have no budget of the set. */
export function ruleFor(view: BudgetView, kind: BudgetKind): BudgetRule | undefined {
  // The API server refuses every eviction of a pod that two budgets select.
  if (!view.isProtected || view.budgets[kind].other !== undefined) return undefined
  switch (kind) {
    case 'primary':
      return { type: 'none' }
    case 'hotbackup':
      return leaving(view)
    default:
      return kind satisfies never
  }
}

/** Hot backups go one after the other: two of them may hold the newest copies of a slot. */
function leaving({ hotBackups, readyHotBackups, shortForMs }: BudgetView): BudgetRule | undefined {
  const expected =
    shortForMs !== undefined && shortForMs >= shortMs ? Math.min(hotBackups, readyHotBackups) : hotBackups
  // The only one may go at once: no other pod could take its place without a node for it.
  return expected < 2 ? undefined : { type: 'leaves', healthy: expected - 1 }
}

/** Returns what is to be done about the budget of one kind; undefined: nothing. */
export function budgetAction(view: BudgetView, kind: BudgetKind): BudgetAction | undefined {
  const { own } = view.budgets[kind]
  const rule = ruleFor(view, kind)
  switch (own.type) {
    case 'absent':
      return rule && { type: 'create', rule }
    case 'leftover':
    case 'taken':
      return undefined
    case 'present': {
      const { uid, resourceVersion } = own
      if (rule === undefined) return { type: 'delete', uid, resourceVersion }
      return isEqual(own.rule, rule) ? undefined : { type: 'replace', rule, resourceVersion }
    }
    default:
      return own satisfies never
  }
}

/** Returns why pods of a set that is protected have no budget of the set; undefined: they have one, or need none. */
export function budgetObstacle({ isProtected, budgets }: BudgetView, kind: BudgetKind): string | undefined {
  const { own, other } = budgets[kind]
  if (!isProtected) return undefined
  if (other !== undefined)
    return `PodDisruptionBudget ${other} selects a ${kind} of this set, so the set has no budget for them: two would make every eviction fail. While ${other} allows an eviction, a drain does not wait until a primary has moved`
  return own.type === 'taken'
    ? `a PodDisruptionBudget has the name of the budget for each ${kind} of this set, and does not belong to it: rename it`
    : undefined
}
