import type { BackupPodSet } from '../api/backuppodset.ts'
import type { Controller } from '../kube/controller.ts'
import { keyOf } from '../kube/object.ts'
import { lowPriority, type Queue } from '../kube/queue.ts'
import type { Store } from '../kube/store.ts'
import type { InFlightPromotions } from '../slot/act/in-flight-promotions.ts'
import type { Terms } from '../slot/act/term.ts'
import type { PullMetrics } from '../slot/http-state/metrics.ts'
import type { Pulled } from '../slot/http-state/pulled.ts'
import type { WriteBehind } from '../state-store/write-behind.ts'
import type { SetMetrics } from './metrics.ts'
import type { UnlabelledPods } from './unlabelled-pods.ts'

export interface LeadDeps {
  readonly terms: Terms
  /**
   * Identifies the term. Equal for two terms if no other process has led between them. Undefined: there is no leader
   * election.
   */
  readonly reign: () => string | undefined
  readonly controller: Controller
  readonly sets: Pick<Store<BackupPodSet>, 'list'>
  readonly queue: Pick<Queue, 'add'>
  readonly unlabelledPods: Pick<UnlabelledPods, 'begin'>
  readonly inFlightPromotions: Pick<InFlightPromotions, 'settled'>
  readonly pulled: Pick<Pulled, 'begin' | 'end'>
  readonly stateStore: Pick<WriteBehind, 'flush' | 'abandon'>
  readonly metrics: Pick<SetMetrics, 'reset'>
  readonly pullMetrics?: Pick<PullMetrics, 'reset'> | undefined
}

/** When a term ends, how long to wait until the state store has the pending writes, ms. */
const flushMs = 500

/** Returns a function that runs the controller for a term, and leaves everything to the next leader afterwards. */
export function createLead(deps: LeadDeps): Controller['run'] {
  const { terms, reign, unlabelledPods, pulled, metrics, stateStore } = deps
  let lastReign: string | undefined
  return async (stop, abort) => {
    const { stopLeading, end } = terms.begin()
    unlabelledPods.begin(terms.current().leads)
    const present = reign()
    pulled.begin(present !== undefined && present === lastReign)
    lastReign = present
    for (const set of deps.sets.list()) deps.queue.add(keyOf(set), { priority: lowPriority })
    try {
      await deps.controller.run(stop, abort)
    } finally {
      stopLeading()
      metrics.reset()
      await deps.inFlightPromotions.settled()
      await stateStore.flush(flushMs)
      await pulled.end()
      deps.pullMetrics?.reset()
      end()
      stateStore.abandon()
    }
  }
}
