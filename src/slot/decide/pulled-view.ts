/** Pulled state as the rules see it. */

/** The container that has the state. After a restart it counts as another one: its state is lost. */
export interface Holder {
  readonly name: string
  readonly uid: string
  readonly epoch: number
  /** Restarts of the container at the time of the pull or push. */
  readonly restarts: number
}

/** The state that a successor is expected to get, as known at the time of the decision. */
export interface StateRef {
  readonly incarnation: string
  readonly generation: number
  readonly bytes: number
  /** Monotonic ms at which the state was current. */
  readonly takenAt: number
}

export interface PulledSlot extends StateRef {
  readonly holder: Holder
  /** Number of candidates that refused it since the primary was lost. */
  readonly refusals: number
}

export interface PulledView {
  readonly slots: ReadonlyMap<number, PulledSlot>
}

/** A pod of such a set: additions to what every pod has. */
export interface PulledPod {
  /** Starts of the container that has the state, including the next start if it has ended. */
  readonly restarts: number
  /** The container runs. */
  readonly running: boolean
  /** The pod is the slot's primary but has lost the slot's state: its container restarted. */
  readonly emptied: boolean
  /** Why it did not take the last state that it was given. */
  readonly refused: string | undefined
}

/** Result of giving a state to a pod. */
export type GiveResult =
  /** `restarts` and `ip`: those of the container that took the state. */
  | { readonly type: 'taken'; readonly restarts: number; readonly ip: string }
  /** The app runs and does not take the state. */
  | { readonly type: 'refused'; readonly why: string }
  /** The pod has changed or is gone: this says nothing about the state. */
  | { readonly type: 'gone'; readonly why: string }
