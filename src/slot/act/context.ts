import type { ParsedService } from '../../api/memory.ts'
import type { NumberedSlotLease } from '../../api/numbered-slot.ts'
import type { Api } from '../../kube/api.ts'
import type { Log } from '../../kube/log.ts'
import type { EndpointSlice, Pod } from '../../kube/resources.ts'
import type { SlotAction } from '../decide/actions.ts'
import type { Owner } from '../decide/owner.ts'
import type { GiveResult, Holder, StateRef } from '../decide/pulled-view.ts'
import type { Candidate } from '../decide/snapshot.ts'
import type { GateRequest, GateResult } from '../gate/open-gate.ts'
import type { ServingRequest, ServingResult } from './await-serving.ts'
import type { InFlightPromotions } from './in-flight-promotions.ts'
import type { Outcome } from './outcome.ts'
import type { PendingDeletions } from './pending-deletions.ts'

/** Writes the records of slots. */
export interface SlotPort {
  readonly owner: Owner
  readonly api: Api
  /** The same API server over separate connections, so that a promotion never queues behind bulk creations. */
  readonly urgentApi: Api
  readonly signal: AbortSignal
}

/** Writes pods. */
export interface PodPort extends SlotPort {
  readonly pendingDeletions: PendingDeletions
}

/** Writes the endpoints of slots. */
export interface EndpointPort extends SlotPort {
  /** The Services that the owner wants for its slots. */
  readonly service: ParsedService | undefined
  /** Returns the slice with this name in the owner's namespace, as the cache has it now. */
  readonly sliceOf: (name: string) => EndpointSlice | undefined
}

/** Reads pods, and waits for what their agents and gates do. */
export interface CandidatePort {
  /** Returns a pod of this pass by uid, as the cache had it. */
  readonly podOf: (uid: string) => Pod | undefined
  readonly openGate: (request: GateRequest) => Promise<GateResult>
  readonly wakeupTimeoutMs: number
  readonly awaitServing: (request: ServingRequest) => Promise<ServingResult>
  /** A pod that was called on stage did not get there. */
  readonly failedOnStage: (uid: string, why: string) => void
}

/** The states that apps return over HTTP. */
export interface StatePort {
  /**
   * Gives the pulled state of a slot to a pod. `fresh`: the primary still serves, so pull its state once more before.
   * In the result, `state` identifies the given state.
   */
  readonly giveState: (
    pod: Pick<Candidate, 'name' | 'uid'>,
    slot: number,
    fresh: boolean,
  ) => Promise<{ readonly result: GiveResult; readonly state: StateRef | undefined }>
  /** From now on this pod has the slot's state. */
  readonly heldState: (slot: number, holder: Holder) => void
  /** A candidate refused the slot's state. */
  readonly refusedState: (slot: number) => void
  /** The slot's incarnation has ended: no pod will be given its state. */
  readonly beganAnew: (slot: number) => void
}

/**
 * A pass over the slots of one owner: all that actions on slots need.
 * @typeParam Action of the owner
 */
export interface SlotContext<Action = SlotAction> extends PodPort, EndpointPort, CandidatePort, StatePort {
  readonly inFlightPromotions: InFlightPromotions
  /** A wake-up or promotion that outlived its pass has ended. */
  readonly finishedLate: (outcome: Outcome<Action>) => void
  /** Call with every accepted Lease that requests another handover; `at`: monotonic ms before the write. */
  readonly requestedHandover: (lease: NumberedSlotLease, at: number) => void
  readonly monotonic: () => number
  readonly log: Log
}
