/** Budgets of Migrations: which may be under way at once. */
import type { MigrationReason } from '../api/migration-reasons.ts'
import type { Held, MigrationView } from './view.ts'

/**
 * How many Migrations may be under way at once: of one set, away from one node, of one namespace, and in all. One namespace cannot
 * keep those of all others waiting. Those of drains have as many places of their own: users, whose Migrations may wait for an hour,
 * cannot keep a node from being drained.
 */
export interface MigrationBudgets {
  readonly perSet: number
  readonly perNode: number
  readonly perNamespace: number
  readonly total: number
}

export const defaultBudgets: MigrationBudgets = { perSet: 2, perNode: 2, perNamespace: 3, total: 8 }

/** Why a Migration has to wait. */
export interface Obstacle {
  readonly reason: MigrationReason
  readonly message: string
}

/** The Migrations that are under way, with those that this plan lets begin. */
export class Admissions {
  readonly #views: MigrationView[]
  readonly #budgets: MigrationBudgets

  constructor(views: readonly MigrationView[], budgets: MigrationBudgets) {
    this.#views = [...views]
    this.#budgets = budgets
  }

  add(view: MigrationView): void {
    this.#views.push(view)
  }

  /** Returns why another one has to wait; undefined if it may begin. */
  obstacleTo(view: MigrationView, { set, slot, node }: Held['source']): Obstacle | undefined {
    const { namespace } = view
    const isOfSet = (each: MigrationView) => each.namespace === namespace && sourceOf(each)?.set === set
    const ofSlot = this.#views.find(each => isOfSet(each) && sourceOf(each)?.slot === slot)
    if (ofSlot !== undefined)
      return { reason: 'SetBusy', message: `waits for Migration ${ofSlot.name} of the same slot` }
    const counted = isOfDrain(view) ? this.#views.filter(isOfDrain) : this.#views
    const ofSet = counted.filter(isOfSet)
    if (ofSet.length >= this.#budgets.perSet)
      return {
        reason: 'SetBusy',
        message: `waits for ${ofSet.map(({ name }) => name).join(', ')} of the same BackupPodSet`,
      }
    const fromNode = counted.filter(each => sourceOf(each)?.node === node).length
    if (fromNode >= this.#budgets.perNode)
      return { reason: 'NodeBudget', message: `waits: ${fromNode} pods are moving away from node ${node}` }
    const here = counted.filter(each => each.namespace === namespace).length
    if (here >= this.#budgets.perNamespace)
      return { reason: 'NamespaceBudget', message: `waits: ${here} pods of this namespace are moving` }
    if (counted.length >= this.#budgets.total)
      return { reason: 'TotalBudget', message: `waits: ${counted.length} Migrations are under way` }
    return undefined
  }
}

/** Only the operator and administrators may ask for this priority. */
const isOfDrain = ({ wish }: MigrationView): boolean => wish.ok && wish.wish.priority === 'SystemCritical'

/** Returns the pod that moves: as it was found first, or else as the caches show it. */
export const sourceOf = ({ status, facts }: Pick<MigrationView, 'status' | 'facts'>) =>
  status.source ?? (facts.type === 'held' ? facts.source : undefined)
