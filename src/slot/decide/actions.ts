/** The actions on slots, as data: what the rules decide and `act` carries out. */
import type { ParsedService } from '../../api/memory.ts'
import type { NumberedSlotLease } from '../../api/numbered-slot.ts'
import type { SlotPolicy } from '../../api/slot-policy.ts'
import type { OriginOfMemory } from '../../api/slot-status.ts'
import type { Endpoint, ServicePort } from './endpoints-view.ts'
import type { PodRef } from './pod-ref.ts'
import type { StateRef } from './pulled-view.ts'
import type { Candidate, LostPrimary } from './snapshot.ts'

/** Why a slot starts empty; `NoState` and `Refused` are about states over HTTP. */
export type EmptyStart =
  /** No node has its memory. */
  | 'Gone'
  /** Nodes keep its memory or may keep it, and `giveUpAfterSeconds` is over. */
  | 'GivenUp'
  | 'NoState'
  /** Too many pods did not accept its state. */
  | 'Refused'

/** The slot that a pod takes. Slot and epoch change in the same write as its label. */
export interface Role {
  readonly slot: number
  readonly epoch: number
  /** The lost primary that it replaces, if there is one. */
  readonly replaces: LostPrimary | undefined
  /** The successor starts with an empty memory, and why. */
  readonly startsEmpty?: EmptyStart
  /** The incarnation that this ends because no node has a copy. The API server must confirm that before the action. */
  readonly ends?: NumberedSlotLease
}

/** The saved state that a promotion is expected to restore, as known in advance. */
export interface Origin {
  readonly how: Exclude<OriginOfMemory, 'Empty'>
  readonly generation: number
  readonly bytes: number
  /** The generation must first be transferred to the pod's node. */
  readonly moves: boolean
  /** It must be restored there: the pod has no staged (frozen) clone of it. */
  readonly restores: boolean
  /** Monotonic ms at which the dump froze this memory. */
  readonly takenAt: number
  /** The same time by the clock of the source, ms since the epoch. */
  readonly takenAtSource: number
}

/** A primary that is stopped for its successor. */
export interface Standing {
  /** The Lease that names it. */
  readonly lease: NumberedSlotLease
  /** Monotonic ms; after that it may run again. */
  readonly until: number
}

/** One write to the cluster that concerns a slot. */
export type SlotAction =
  /** A backup takes a slot with its memory. Order: the Lease, the gate of a cold backup, the agent, the label. */
  | {
      readonly type: 'promote'
      readonly pod: Candidate
      readonly role: Role
      readonly lease: NumberedSlotLease
      /** Version of the Lease to swap; undefined: the Lease already names this pod, and only the later steps remain. */
      readonly version: string | undefined
      readonly origin: Origin | undefined
      /** If the slot's primary is stopped in a handover to this pod. */
      readonly standing?: Standing
      /** The pod that was called before, if no agent has told that it resumes. The API server must confirm that. */
      readonly unresumed?: Pick<Candidate, 'name' | 'uid'>
      /** It waits at its gate. */
      readonly wake: boolean
    }
  /** A pod gets another kind, and perhaps a slot. */
  | {
      readonly type: 'convert'
      readonly pod: Candidate
      readonly to: 'primary' | 'hotbackup'
      readonly role: Role | undefined
      /** It waits at its gate, which the action must open. */
      readonly wake: boolean
      /** Pulled state to give to it before its label changes. */
      readonly state?: StateRef
    }
  /** Gives a primary its pulled state back after its app restarted in the pod. */
  | { readonly type: 'restore'; readonly pod: Candidate; readonly slot: number; readonly state: StateRef }
  /** Wakes a converted pod that is at its gate again: its sandbox was recreated, or the gate restarted. */
  | { readonly type: 'wake'; readonly pod: Candidate }
  /** A former primary leaves the stage; a later action deletes it. */
  | { readonly type: 'retire'; readonly pod: Candidate }
  /** Writes the next state of a slot's Lease. */
  | {
      readonly type: 'writeSlot'
      readonly lease: NumberedSlotLease
      /** Undefined: the Lease does not exist yet. */
      readonly version: string | undefined
      /** Restart count of the primary's containers so far. */
      readonly restarts: number
      /**
       * The primary's app ended, no backup could take over, and the app that now runs in the pod starts with an empty
       * memory.
       */
      readonly stateLost: boolean
      /** The Lease requests a handover with this write, and not since an earlier one of this process. */
      readonly requestsHandover?: true
      /** Only while the slot's primary is stopped: it ends, and may not have run since its last save. */
      readonly standing?: Standing
      /** Only while no agent has told that this called pod resumes, which the Lease tells to end. */
      readonly unresumed?: Pick<Candidate, 'name' | 'uid'>
      /** As in `Role`. */
      readonly ends?: NumberedSlotLease
      /** The set no longer has a place for the slot, or has one again; or it is suspended, or resumes. */
      readonly retention?: {
        readonly type: 'begins' | 'ends' | 'suspends' | 'resumes' | 'clones'
        readonly note: string
      }
    }
  /** The API server states that the primaries of a node are silent, if the node's agent has not written since. */
  | {
      readonly type: 'stateSilence'
      readonly node: string
      /** The report of the node, as it was read. */
      readonly report: { readonly uid: string; readonly resourceVersion: string }
      /** The number of its statements, with this one. */
      readonly silences: number
    }
  /** Ends the grants of an incarnation up to this number, unless this heir has begun to resume by one of them. */
  | {
      readonly type: 'endGrant'
      readonly pod: PodRef
      readonly slot: number
      readonly incarnation: string
      readonly number: number
    }
  /** Changes nothing in the Lease of a slot but its policy. */
  | {
      readonly type: 'writePolicy'
      readonly slot: number
      /** Version of the Lease that was read. */
      readonly version: string
      readonly policy: SlotPolicy
    }
  /** Ends the incarnation of a slot that no pod has or will take. */
  | {
      readonly type: 'deleteSlot'
      readonly slot: number
      /** As in `Role`. */
      readonly ends?: NumberedSlotLease
      /** The event to send about it. */
      readonly told?: { readonly type: 'Normal' | 'Warning'; readonly note: string }
      readonly lease: { readonly uid: string; readonly resourceVersion: string }
    }
  /** Creates or changes a Service without selector. `version` undefined: it does not exist yet. */
  | {
      readonly type: 'applyService'
      readonly service: string
      readonly serviceType: ParsedService['type']
      readonly ports: readonly ServicePort[]
      readonly slot: number | undefined
      readonly version: string | undefined
    }
  /** Replaces the endpoints of a Service. */
  | {
      readonly type: 'applyEndpoints'
      readonly slice: string
      readonly service: string
      readonly family: 'IPv4' | 'IPv6'
      readonly ports: readonly ServicePort[]
      readonly endpoints: readonly Endpoint[]
      readonly version: string | undefined
    }
  /** Deletes a Service or slice that is no longer wanted. */
  | {
      readonly type: 'deleteService'
      readonly what: 'service' | 'slice'
      readonly name: string
      readonly resourceVersion: string
    }

/** The actions of one type. */
export type SlotActionOf<Type extends SlotAction['type']> = Extract<SlotAction, { readonly type: Type }>
