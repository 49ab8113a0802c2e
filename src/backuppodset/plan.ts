import type { Strategy } from '../api/backuppodset.ts'
import type { PodKind } from '../api/labels.ts'
import type { NumberedSlotLease } from '../api/numbered-slot.ts'
import type { Outcome as OutcomeOf } from '../slot/act/outcome.ts'
import type { Role, SlotAction } from '../slot/decide/actions.ts'
import type { SlotMemory } from '../slot/decide/memory-view.ts'
import type { PodRef } from '../slot/decide/pod-ref.ts'
import type { StateRef } from '../slot/decide/pulled-view.ts'
import type { Revision, StoredRevision } from './revisions/revision.ts'
import type { PodView } from './snapshot.ts'

/** Why a pod is deleted; used as the event's reason and as a metric label. */
export type DeleteReason =
  | 'Surplus'
  | 'Suspended'
  | 'Finished'
  | 'Superseded'
  | 'Outdated'
  | 'GateSpent'
  | 'Retired'
  | 'Misfit'
  | 'Spoiled'
  | 'Stranded'
  | 'CalledOff'

/** The preferred nodes of a new hot backup. */
export interface Near {
  /** The best first. */
  readonly nodes: readonly string[]
  /** Primaries of the set are on the best node: the preference for nodes without primaries would speak against it. */
  readonly besidePrimary: boolean
}

/** One write to the cluster, as data. `act/` has an executor for each type. */
export type Action =
  | SlotAction
  | { readonly type: 'adopt'; readonly pod: PodRef }
  | { readonly type: 'release'; readonly pod: PodRef }
  | {
      readonly type: 'create'
      readonly kind: PodKind
      readonly name: string
      readonly strategy: Strategy
      readonly role: Role | undefined
      /** The template to create it from; absent: the set's current one. */
      readonly revision?: Revision
      /** A hot backup beyond the set's number, for a slot that no existing backup can take. */
      readonly successorOf?: {
        readonly slot: number
        /** Nodes that have the slot's memory, the best first. */
        readonly near: readonly string[]
        /** The node that it must not run on. */
        readonly notOn?: string | undefined
        /** The nodes that it runs on only if no other takes it. */
        readonly avoid?: readonly string[] | undefined
        /** Labels that its node must have, beside those that the template asks for. */
        readonly nodeSelector?: Readonly<Record<string, string>>
        /** Uid of the Migration that it is made for. */
        readonly migration?: string
      }
      /** Where a hot backup could be the heir of slots that have none. */
      readonly near?: Near
      /** Pulled state to give to it before it gets on stage. */
      readonly state?: StateRef
    }
  | { readonly type: 'delete'; readonly pod: PodView; readonly reason: DeleteReason }
  /** Announces in an event that the memory of a slot ends, then marks its Lease. */
  | { readonly type: 'giveUp'; readonly slot: SlotMemory; readonly lease: NumberedSlotLease }
  /** Stores or deletes a template revision of the set. */
  | { readonly type: 'saveRevision'; readonly revision: Revision; readonly number: number }
  | { readonly type: 'deleteRevision'; readonly revision: StoredRevision }

export type ActionType = Action['type']

/** The result of one action. */
export type Outcome = OutcomeOf<Action>

/**
 * A group of actions that may run in parallel. A tier starts only when all actions of the tiers before it succeeded.
 */
export interface Tier {
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
    | 'retirements'
  readonly actions: readonly Action[]
  /** Independent of the tiers: it runs even if an earlier tier failed, and no later tier waits for it. */
  readonly aside?: boolean
}

export interface Plan {
  readonly tiers: readonly Tier[]
  /** Requeue after this many ms, because the plan changes with time alone. */
  readonly requeueAfterMs: number | undefined
}
