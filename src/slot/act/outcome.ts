import type { Pod } from '../../kube/resources.ts'
import type { SlotAction } from '../decide/actions.ts'

/** The result of one action. */
export type Outcome<Action = SlotAction> =
  /** `pod` is as the API server returned it; absent if the pod no longer exists. */
  | {
      readonly type: 'done'
      readonly action: Action
      readonly pod: Pod | undefined
      readonly phases?: Phases
    }
  /** A wake-up that continues in the background; its end starts the next pass. */
  | { readonly type: 'pending'; readonly action: Action }
  /** A wake-up that failed for good; the cold pod has been deleted. */
  | { readonly type: 'spent'; readonly action: Action; readonly why: string }
  /**
   * The promoted pod did not get on stage or did not take its state. It is unchanged, and another pod is tried next.
   */
  | { readonly type: 'setback'; readonly action: Action; readonly why: string }
  | { readonly type: 'failed'; readonly action: Action; readonly error: unknown }

/** Monotonic ms at which the steps of a promotion ended. */
export interface Phases {
  readonly lease?: number
  /** The gate of a cold backup has answered. */
  readonly woken?: number
  readonly serving?: number
  readonly published?: number
}
