/** The primaries on nodes that are drained, and the Migrations about them, as the rules see them. */

/** A primary whose memory is kept, on a node that it has to leave. */
export interface LeavingPrimary {
  readonly namespace: string
  readonly set: { readonly name: string; readonly uid: string }
  readonly slot: number
  readonly name: string
  readonly uid: string
  readonly node: string
  /** Why the node is drained. */
  readonly why: string
  /** A Migration of this pod has not ended; a user may have made it. */
  readonly isMoving: boolean
  /** That Migration waits for something that only a user can change. Undefined: it does not. */
  readonly waits: Waiting | undefined
  /** The last Migration that was made for this drain and has ended. Undefined: there is none. */
  readonly last: Attempt | undefined
  /** The number of the next try, whose name is free. Undefined: no name is. */
  readonly next: number | undefined
}

export interface Waiting {
  /** Uid of the Migration. */
  readonly migration: string
  /** Reason and message of its condition. */
  readonly reason: string
  readonly message: string
}

export interface Attempt {
  readonly number: number
  /** Wall clock, ms since the epoch. */
  readonly endedAt: number
  /** Reason and message of its condition. */
  readonly reason: string
  readonly message: string
}

/** A Migration of a drain that has not stopped its pod yet. */
export interface Callable {
  readonly namespace: string
  readonly name: string
  readonly uid: string
  readonly resourceVersion: string
  readonly node: string
  /** The pod need not leave: its node takes pods again, or its set does not move pods any more. */
  readonly isNeedless: boolean
}

export interface DrainView {
  readonly primaries: readonly LeavingPrimary[]
  readonly migrations: readonly Callable[]
}
