import type { Pod } from '../../kube/resources.ts'
import type { Action } from '../plan.ts'

/** What became of one action. */
export type Outcome =
  /** `pod` is as the API server returned it; absent where the pod is gone. */
  | {
      readonly type: 'done'
      readonly action: Action
      readonly pod: Pod | undefined
      readonly phases?: Phases
    }
  /** A wake-up that goes on in the background; its end starts the next pass. */
  | { readonly type: 'pending'; readonly action: Action }
  /** A wake-up that failed for good and cost the cold pod. */
  | { readonly type: 'spent'; readonly action: Action; readonly why: string }
  /** A promotion whose pod did not come on stage, or did not take its state; the pod is as it was, and another one has its turn. */
  | { readonly type: 'setback'; readonly action: Action; readonly why: string }
  | { readonly type: 'failed'; readonly action: Action; readonly error: unknown }

/** Monotonic ms at which the steps of a promotion ended. */
export interface Phases {
  readonly lease?: number
  /** Of a cold backup: its gate has answered. */
  readonly woken?: number
  readonly serving?: number
  readonly published?: number
}
