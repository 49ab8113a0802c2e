import type { ParsedSet } from '../../api/parse.ts'
import type { Api } from '../../kube/api.ts'
import type { Log } from '../../kube/log.ts'
import type { EndpointSlice, Lease, Pod, Service } from '../../kube/resources.ts'
import type { PodSettings } from '../pod/render.ts'
import type { GiveResult } from '../pulled/give.ts'
import type { Holder, StateRef } from '../pulled/view.ts'
import type { PodView } from '../snapshot.ts'
import type { Tombstones } from '../tombstones.ts'
import type { ServingRequest, ServingResult } from './await-serving.ts'
import type { GateRequest, GateResult } from './open-gate.ts'
import type { Outcome } from './outcome.ts'
import type { Wakes } from './wakes.ts'

/** What every executor works with, for one pass over one set. */
export interface ActContext {
  readonly set: ParsedSet
  readonly api: Api
  /** The same API server through connections of its own, so that a promotion never queues behind bulk creations. */
  readonly urgentApi: Api
  readonly settings: PodSettings
  readonly tombstones: Tombstones
  readonly wakes: Wakes
  readonly openGate: (request: GateRequest) => Promise<GateResult>
  /** A pod of this pass by uid, as the cache had it. */
  readonly podOf: (uid: string) => Pod | undefined
  /** To be called with every pod that a write returned, before anything else looks at the set again. */
  readonly wrote: (pod: Pod) => void
  readonly wroteLease: (lease: Lease) => void
  readonly wroteService: (service: Service) => void
  readonly wroteSlice: (slice: EndpointSlice) => void
  /** Likewise with every Lease that was deleted. */
  readonly deletedLease: (lease: {
    readonly namespace: string
    readonly name: string
    readonly uid: string
    readonly resourceVersion: string
  }) => void
  /** The slice of the set's namespace with this name as the cache has it now. */
  readonly sliceOf: (name: string) => EndpointSlice | undefined
  readonly awaitServing: (request: ServingRequest) => Promise<ServingResult>
  /** A pod that was called on stage did not come. */
  readonly failedOnStage: (uid: string, why: string) => void
  /**
   * Gives the pulled state of a slot to a pod. `fresh`: the primary still serves, and is asked once more before.
   * `state`: which one it was.
   */
  readonly giveState: (
    pod: Pick<PodView, 'name' | 'uid'>,
    slot: number,
    fresh: boolean,
  ) => Promise<{ readonly result: GiveResult; readonly state: StateRef | undefined }>
  /** From now on this pod has the slot's state. */
  readonly heldState: (slot: number, holder: Holder) => void
  /** A candidate did not take the slot's state. */
  readonly refusedState: (slot: number) => void
  /** The slot's life has ended: nobody will be given its state. */
  readonly beganAnew: (slot: number) => void
  readonly monotonic: () => number
  /** Wall clock, ms. */
  readonly now: () => number
  /** Name of this process, for events. */
  readonly instance: string
  readonly log: Log
  /** A wake-up or promotion that outlived its pass has ended. */
  readonly finishedLate: (outcome: Outcome) => void
  /** Whether the namespace of the set is being deleted, as the API server knows. */
  readonly isEnding: () => Promise<boolean>
  /** Whether this process leads, by the clock: asked before each batch. Each single write is guarded by the client. */
  readonly mayWrite: () => boolean
  /** This pass should end after the batch that runs. */
  readonly mustYield: () => boolean
  /** To be called when the plan has been performed; wake-ups may go on. */
  readonly ended: () => void
  readonly signal: AbortSignal
}
