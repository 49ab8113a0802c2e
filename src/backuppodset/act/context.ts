import type { ParsedSet } from '../../api/parse.ts'
import type { SetSlotLease } from '../../api/set-slot.ts'
import type { Api } from '../../kube/api.ts'
import type { Log } from '../../kube/log.ts'
import type { EndpointSlice, Pod } from '../../kube/resources.ts'
import type { PendingDeletions } from '../pending-deletions.ts'
import type { PodSettings } from '../pod/render.ts'
import type { GiveResult } from '../pulled/give.ts'
import type { Holder, StateRef } from '../pulled/view.ts'
import type { PodView } from '../snapshot.ts'
import type { ServingRequest, ServingResult } from './await-serving.ts'
import type { InFlightPromotions } from './in-flight-promotions.ts'
import type { GateRequest, GateResult } from './open-gate.ts'
import type { Outcome } from './outcome.ts'

/** Dependencies of all executors, for one pass over one set. */
export interface ActContext {
  readonly set: ParsedSet
  readonly api: Api
  /** The same API server over separate connections, so that a promotion never queues behind bulk creations. */
  readonly urgentApi: Api
  readonly settings: PodSettings
  readonly pendingDeletions: PendingDeletions
  readonly inFlightPromotions: InFlightPromotions
  readonly openGate: (request: GateRequest) => Promise<GateResult>
  /** Returns a pod of this pass by uid, as the cache had it. */
  readonly podOf: (uid: string) => Pod | undefined
  /** Call with every accepted Lease that requests another handover; `at`: monotonic ms before the write. */
  readonly requestedHandover: (lease: SetSlotLease, at: number) => void
  /** Returns the slice with this name in the set's namespace, as the cache has it now. */
  readonly sliceOf: (name: string) => EndpointSlice | undefined
  readonly awaitServing: (request: ServingRequest) => Promise<ServingResult>
  /** A pod that was called on stage did not get there. */
  readonly failedOnStage: (uid: string, why: string) => void
  /**
   * Gives the pulled state of a slot to a pod. `fresh`: the primary still serves, so pull its state once more before.
   * In the result, `state` identifies the given state.
   */
  readonly giveState: (
    pod: Pick<PodView, 'name' | 'uid'>,
    slot: number,
    fresh: boolean,
  ) => Promise<{ readonly result: GiveResult; readonly state: StateRef | undefined }>
  /** From now on this pod has the slot's state. */
  readonly heldState: (slot: number, holder: Holder) => void
  /** A candidate refused the slot's state. */
  readonly refusedState: (slot: number) => void
  /** The slot's incarnation has ended: no pod will be given its state. */
  readonly beganAnew: (slot: number) => void
  readonly monotonic: () => number
  /** Wall clock, ms. */
  readonly now: () => number
  /** Name of this process, for events. */
  readonly instance: string
  readonly log: Log
  /** A wake-up or promotion that outlived its pass has ended. */
  readonly finishedLate: (outcome: Outcome) => void
  /** Asks the API server whether the set's namespace is being deleted. */
  readonly isNamespaceTerminating: () => Promise<boolean>
  /**
   * Returns true while this process is the leader, by its own clock. Checked before each batch; the client guards each
   * single write.
   */
  readonly mayWrite: () => boolean
  /** True if this pass should end after the current batch. */
  readonly mustYield: () => boolean
  /** Call when the plan has been performed; wake-ups may continue. */
  readonly ended: () => void
  readonly signal: AbortSignal
}
