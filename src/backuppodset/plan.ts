import type { Strategy } from '../api/backuppodset.ts'
import type { PodKind } from '../api/labels.ts'
import type { LostPrimary, PodRef, PodView } from './snapshot.ts'

/** Why a pod is deleted; becomes the event's reason and a metric label. */
export type DeleteReason = 'Surplus' | 'Finished' | 'Superseded' | 'Outdated' | 'GateSpent'

/** The place on stage that a pod takes: slot and epoch move in the same write as its label. */
export interface Role {
  readonly slot: number
  readonly epoch: number
  /** The primary it replaces, where one was lost. */
  readonly replaces: LostPrimary | undefined
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
    }
  | {
      readonly type: 'convert'
      readonly pod: PodView
      readonly to: 'primary' | 'hotbackup'
      readonly role: Role | undefined
      /** The gate has to be woken before the label moves. */
      readonly wake: boolean
    }
  /** A converted pod whose sandbox was made anew stands at its gate again. */
  | { readonly type: 'rewake'; readonly pod: PodView }
  | { readonly type: 'delete'; readonly pod: PodView; readonly reason: DeleteReason }

export type ActionType = Action['type']

/** Actions of one tier may run side by side; a tier starts only when all of the one before it succeeded. */
export interface Stage {
  readonly tier: 'claims' | 'primaries' | 'hotbackups' | 'coldbackups' | 'together' | 'rollout'
  readonly actions: readonly Action[]
}

export interface Plan {
  readonly stages: readonly Stage[]
  /** Look again after this many ms, because time alone will change the answer. */
  readonly requeueAfterMs: number | undefined
}
