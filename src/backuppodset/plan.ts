import type { OriginOfMemory, Strategy } from '../api/backuppodset.ts'
import type { PodKind } from '../api/labels.ts'
import type { SlotLease } from '../api/slot-lease.ts'
import type { SlotMemory } from './memory/view.ts'
import type { StateRef } from './pulled/view.ts'
import type { Revision, StoredRevision } from './revisions/revision.ts'
import type { Endpoint, ServicePort } from './services/view.ts'
import type { LostPrimary, PodRef, PodView } from './snapshot.ts'

/** Why a pod is deleted; becomes the event's reason and a metric label. */
export type DeleteReason =
  | 'Surplus'
  | 'Finished'
  | 'Superseded'
  | 'Outdated'
  | 'GateSpent'
  | 'Retired'
  | 'Misfit'
  | 'Spoiled'

/** The place on stage that a pod takes: slot and epoch move in the same write as its label. */
export interface Role {
  readonly slot: number
  readonly epoch: number
  /** The primary it replaces, where one was lost. */
  readonly replaces: LostPrimary | undefined
  /** The slot had a memory and nobody can bring it back: its successor begins with none. */
  readonly startsEmpty?: boolean
  /** The life that ends with that, because no node keeps anything of it: the API server is asked again before. */
  readonly ends?: SlotLease
}

/** Which saved state a promotion is to bring on stage, as far as it is known before. */
export interface Origin {
  readonly how: Exclude<OriginOfMemory, 'Empty'>
  readonly generation: number
  readonly bytes: number
  /** It has to be brought to the node of the pod first. */
  readonly moves: boolean
  /** It has to be brought back there: it does not lie frozen in the pod. */
  readonly restores: boolean
  /** Monotonic ms of the moment whose memory it is. */
  readonly takenAt: number
  /** The same moment by the clock of the node that saved it, ms since the epoch. */
  readonly takenAtSource: number
}

/** One write to the cluster, as data. `act/` has one executor for each type. */
export type Action =
  | { readonly type: 'adopt'; readonly pod: PodRef }
  | { readonly type: 'release'; readonly pod: PodRef }
  | {
      readonly type: 'create'
      readonly kind: PodKind
      readonly name: string
      readonly strategy: Strategy
      readonly role: Role | undefined
      /** The template that it is made of; absent: that of the set as it is now. */
      readonly revision?: Revision
      /** A hot backup beyond the set's number, because this slot has none that could take it. */
      readonly successorOf?: {
        readonly slot: number
        /** Nodes that have its memory, the best first. */
        readonly near: readonly string[]
        /** The node that it must not go to. */
        readonly notOn?: string | undefined
      }
      /** Pulled state that it is given before it goes on stage. */
      readonly state?: StateRef
    }
  | {
      readonly type: 'convert'
      readonly pod: PodView
      readonly to: 'primary' | 'hotbackup'
      readonly role: Role | undefined
      /** It stands at its gate, which has to be opened. */
      readonly wake: boolean
      /** Pulled state that it is given before the label moves. */
      readonly state?: StateRef
    }
  /** A primary whose app was started again in its pod gets its pulled state back. */
  | { readonly type: 'restore'; readonly pod: PodView; readonly slot: number; readonly state: StateRef }
  /** A converted pod stands at its gate: its sandbox was made anew, or its gate was started again. */
  | { readonly type: 'wake'; readonly pod: PodView }
  | { readonly type: 'delete'; readonly pod: PodView; readonly reason: DeleteReason }
  /** A backup takes a slot over with its memory: the Lease first, then the gate of a cold one, the agent, the label. */
  | {
      readonly type: 'promote'
      readonly pod: PodView
      readonly role: Role
      readonly lease: SlotLease
      /** Version of the Lease to swap; undefined: it names this pod already, and what comes after it is to be done. */
      readonly version: string | undefined
      readonly origin: Origin | undefined
      /** The Lease as it is, where its holder stands still for this pod. */
      readonly standing?: SlotLease
      /** It stands at its gate. */
      readonly wake: boolean
    }
  /** A loser leaves the stage; it is deleted later. */
  | { readonly type: 'retire'; readonly pod: PodView }
  /** What a slot's Lease says from now on. */
  | {
      readonly type: 'assign'
      readonly lease: SlotLease
      /** Undefined: there is none yet. */
      readonly version: string | undefined
      /** Of the holder's containers, up to now. */
      readonly restarts: number
      /** The holder's app ended, nobody could take over, and what runs in it now begins anew. */
      readonly stateLost: boolean
      /** As in `Role`. */
      readonly ends?: SlotLease
      /** The set has no place for the slot from now on, or has one again. */
      readonly retention?: { readonly type: 'begins' | 'ends'; readonly note: string }
    }
  /** Ends the life of a slot that nobody holds and nobody will. */
  | {
      readonly type: 'forget'
      readonly slot: number
      /** As in `Role`. */
      readonly ends?: SlotLease
      /** What is to be said of it. */
      readonly told?: { readonly type: 'Normal' | 'Warning'; readonly note: string }
      readonly lease: { readonly uid: string; readonly resourceVersion: string }
    }
  /** Says in an event that the memory of a slot will not go on, and then marks its Lease. */
  | { readonly type: 'giveUp'; readonly slot: SlotMemory; readonly lease: SlotLease }
  /** Keeps a template of the set, or forgets it. */
  | { readonly type: 'record'; readonly revision: Revision; readonly number: number }
  | { readonly type: 'prune'; readonly revision: StoredRevision }
  /** Makes or changes a Service without selector. `version` undefined: there is none yet. */
  | {
      readonly type: 'serve'
      readonly service: string
      readonly ports: readonly ServicePort[]
      readonly slot: number | undefined
      readonly version: string | undefined
    }
  /** Replaces the endpoints of a Service. */
  | {
      readonly type: 'publish'
      readonly slice: string
      readonly service: string
      readonly family: 'IPv4' | 'IPv6'
      readonly ports: readonly ServicePort[]
      readonly endpoints: readonly Endpoint[]
      readonly version: string | undefined
    }
  /** Takes a Service, or a slice, away that is not wished for any more. */
  | {
      readonly type: 'withdraw'
      readonly what: 'service' | 'slice'
      readonly name: string
      readonly resourceVersion: string
    }

export type ActionType = Action['type']

/** Actions of one tier may run side by side; a tier starts only when all of the one before it succeeded. */
export interface Stage {
  readonly tier:
    | 'claims'
    | 'revisions'
    | 'primaries'
    | 'hotbackups'
    | 'coldbackups'
    | 'together'
    | 'rollout'
    | 'services'
    | 'assignments'
    | 'farewells'
  readonly actions: readonly Action[]
  /** Stands beside the tiers: it is done although one before it failed, and none waits for it. */
  readonly aside?: boolean
}

export interface Plan {
  readonly stages: readonly Stage[]
  /** Look again after this many ms, because time alone will change the answer. */
  readonly requeueAfterMs: number | undefined
}
