/** Pulled state as the rules see it. */

/** Whose state it is. A container that was started again is somebody else: its state is gone. */
export interface Holder {
  readonly name: string
  readonly uid: string
  readonly epoch: number
  /** Of the container that has the state, when it was pulled from there or pushed to it. */
  readonly restarts: number
}

/** Which state a successor is to be given, as far as it is known when that is decided. */
export interface StateRef {
  readonly life: string
  readonly generation: number
  readonly bytes: number
  /** Monotonic ms of the moment whose state it is. */
  readonly takenAt: number
}

export interface PulledSlot extends StateRef {
  readonly holder: Holder
  /** Candidates that did not take it since the holder was lost. */
  readonly refusals: number
}

export interface PulledView {
  readonly slots: ReadonlyMap<number, PulledSlot>
}

/** One pod of such a set, beside what every pod has. */
export interface PulledPod {
  /** Starts of the container that has the state, the next one included if it has ended. */
  readonly restarts: number
  /** It runs. */
  readonly running: boolean
  /** The slot's state is not in this pod any more, although the pod holds the slot: its container was started again. */
  readonly emptied: boolean
  /** Why it did not take a state when it was last given one. */
  readonly refused: string | undefined
}
