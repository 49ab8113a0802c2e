/** Budgets of Migrations: which may be under way at once. */
import type { MigrationReason } from '../api/migration-reasons.ts'
import type { Held, MigrationView } from './view.ts'

/**
 * How many Migrations may be under way at once: away from one node, of one namespace, and in all. One namespace cannot
 * keep those of all others waiting. Those of drains have as many places of their own: users, whose Migrations may wait for an hour,
 * cannot keep a node from being drained.
 */
export const budgets = { perNode: 2, perNamespace: 3, total: 8 } as const

/** Why a Migration has to wait. */
export interface Obstacle {
  readonly reason: MigrationReason
  readonly message: string
}

/** The Migrations that are under way, with those that this plan lets begin. */
export class Admissions {
  readonly #views: MigrationView[]

  constructor(views: readonly MigrationView[]) {
    this.#views = [...views]
  }

  add(view: MigrationView): void {
    this.#views.push(view)
  }

  /** Returns why another one has to wait; undefined if it may begin. */
  obstacleTo(view: MigrationView, { set, node }: Held['source']): Obstacle | undefined {
    const { namespace } = view
    const ofSet = this.#views.find(each => each.namespace === namespace && sourceOf(each)?.set === set)
    if (ofSet !== undefined)
      return { reason: 'SetBusy', message: `waits for Migration ${ofSet.name} of the same BackupPodSet` }
    const counted = isOfDrain(view) ? this.#views.filter(isOfDrain) : this.#views
    const fromNode = counted.filter(each => sourceOf(each)?.node === node).length
    if (fromNode >= budgets.perNode)
      return { reason: 'NodeBudget', message: `waits: ${fromNode} pods are moving away from node ${node}` }
    const here = counted.filter(each => each.namespace === namespace).length
    if (here >= budgets.perNamespace)
      return { reason: 'NamespaceBudget', message: `waits: ${here} pods of this namespace are moving` }
    if (counted.length >= budgets.total)
      return { reason: 'TotalBudget', message: `waits: ${counted.length} Migrations are under way` }
    return undefined
  }
}

/** Only the operator and administrators may ask for this priority. */
const isOfDrain = ({ wish }: MigrationView): boolean => wish.ok && wish.wish.priority === 'SystemCritical'

/** Returns the pod that moves: as it was found first, or else as the caches show it. */
export const sourceOf = ({ status, facts }: Pick<MigrationView, 'status' | 'facts'>) =>
  status.source ?? (facts.type === 'held' ? facts.source : undefined)
