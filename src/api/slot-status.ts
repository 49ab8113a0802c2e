/** The slots in the status of their owner. */

/** From the best to none. */
export const protections = ['Frozen', 'Staged', 'Warm', 'Cold', 'None'] as const
export type Protection = (typeof protections)[number]

/**
 * How a successor got its slot's memory. Frozen: it had a frozen clone. Staged: its node had a staged copy. Fetched:
 * from another node. Warm: it ran and got a pulled state. Cold: a cold backup was woken for it. Created: a pod was
 * created for it. Empty: no node had the memory, and the slot began a new incarnation.
 */
export const origins = ['Frozen', 'Staged', 'Fetched', 'Warm', 'Cold', 'Created', 'Empty'] as const
export type OriginOfMemory = (typeof origins)[number]

export const slotLimits = Object.freeze({
  /** Entries of a list in the status: each costs etcd and every watcher. The counts include the rest. */
  listed: 200,
  /** Nodes listed for one slot: with 200 slots, the status is still small enough to be stored. */
  usableOn: 10,
} as const)

export interface SlotStatus {
  readonly slot: number
  readonly pod: string
  readonly node?: string
  readonly epoch: number
  readonly ready: boolean
  /** The following fields only for sets that keep memory. The newest generation that a holder has; 0: none. */
  readonly generation?: number
  /** RFC 3339: the time of the memory that a successor would have, or an earlier time: it is written once a minute. */
  readonly savedAt?: string
  /** Seconds between two checkpoints, as the node adapts it to the stops that the primary may have. */
  readonly intervalSeconds?: number
  /** Why the interval is longer than configured; free text, since later agents may add reasons. */
  readonly intervalReason?: string
  /** Seconds from the stop of the primary until that generation was complete on its holder. */
  readonly pipelineSeconds?: number
  /** Nodes on which it could be restored. */
  readonly usableOn?: readonly string[]
  /** Total number of these nodes, if the list is cut. */
  readonly usableOnCount?: number
  readonly protection?: Protection
  /** Name of the hot backup that may take the slot without the operator, once the primary has died. */
  readonly grantedTo?: string
  /** The slot's last takeover after a loss. */
  readonly lastFailover?: SlotFailover
}

/** A slot without a place, whose memory is kept: for a while after a smaller `replicas`, or until its set resumes. */
export interface RetainedSlot {
  readonly slot: number
  /** Name of its last primary. */
  readonly pod: string
  /** RFC 3339. */
  readonly since: string
  /** RFC 3339: a set that grows again before this time gets the slot back. Absent: the slot is suspended, and kept until it resumes. */
  readonly until?: string
  /** The newest generation that a node keeps. */
  readonly generation: number
  /** RFC 3339: the time of that memory. */
  readonly savedAt?: string
  readonly bytes?: number
  /** Nodes with a copy of it. */
  readonly keptOn: readonly string[]
  /** Total number of these nodes, if the list is cut. */
  readonly keptOnCount?: number
  /** Those whose agents cannot say now that they have it: it is lost where they do not come back. */
  readonly unsureOn?: readonly string[]
}

/** Only for owners that keep memory, and if there are any. */
export interface RetainedSlots {
  readonly retainedSlots?: readonly RetainedSlot[]
  /** Total number of retained slots, if the list is cut. */
  readonly retainedSlotCount?: number
}

/** Steps of a failover in the order in which they end, with the names that `LastFailover.phases` has. `woken`: of a cold backup only. */
export const failoverSteps = ['lease', 'woken', 'serving', 'published'] as const

export interface SlotFailover {
  readonly from: string
  readonly to: string
  readonly reason: string
  readonly seconds: number
  /** RFC 3339. */
  readonly at: string
  readonly stateAge?: number
}

export interface LastFailover {
  readonly slot: number
  readonly from: string
  readonly to: string
  readonly reason: string
  /** From the first sight of the loss to the accepted write that put the successor on stage. */
  readonly seconds: number
  /** RFC 3339. */
  readonly at: string
  /** The following fields only with memory. */
  readonly how?: OriginOfMemory
  /** The restored generation, and its age in seconds. */
  readonly generation?: number
  readonly stateAge?: number
  /** Seconds of each of `failoverSteps`. The API server sorts them by name. */
  readonly phases?: Readonly<Record<string, number>>
}
