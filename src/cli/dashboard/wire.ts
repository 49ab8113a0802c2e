/** The messages from the program to its page. Only these fields of objects leave the program: none of them can hold a Secret. */

/** Times are milliseconds since the epoch, durations are seconds. */
export interface Head {
  /** URL of the API server. */
  readonly server: string
  /** A namespace; absent: all. */
  readonly namespace?: string
  readonly version: string
  readonly now: number
  /** The sets have been read once. */
  readonly isFilled: boolean
  /** The API server does not answer: everything on the page is as it was at `since`. */
  readonly lost?: { readonly since: number; readonly why: string }
  /** Rights that the user lacks, and what they would show. */
  readonly missing: readonly MissingRight[]
}

export interface MissingRight {
  /** Such as `list pods in shop`. */
  readonly right: string
  /** The part of the page that it would fill. */
  readonly shows: string
}

export interface CountPicture {
  readonly wanted: number
  readonly inPlace: number
}

/** A pod that would follow a primary. The operator decides when the primary is lost, so there may be several. */
export interface FollowerPicture {
  readonly how: 'Frozen' | 'Staged' | 'Warm' | 'Cold' | 'Created'
  /** Absent: the operator would create the pod. */
  readonly pod?: string
  readonly node?: string
}

export interface SlotPicture {
  readonly slot: number
  readonly pod: string
  readonly node?: string
  readonly ready: boolean
  readonly epoch: number
  readonly protection?: string
  readonly generation?: number
  /** Time of the memory that a successor would have. */
  readonly savedAt?: number
  readonly followers: readonly FollowerPicture[]
  /** How many more there are. */
  readonly otherFollowers?: number
}

export interface TroublePicture {
  readonly text: string
  readonly cure?: string
}

export interface PhasePicture {
  readonly name: string
  /** Absent: it lasts. */
  readonly seconds?: number
}

/** A failover or a move. */
export interface Happening {
  readonly id: string
  readonly type: 'failover' | 'move'
  readonly slot?: number
  readonly from: string
  readonly to: string
  readonly at: number
  /** Absent: it is under way. */
  readonly seconds?: number
  readonly outcome: 'done' | 'failed' | 'under way'
  /** Reason, and what the operator says of it. */
  readonly why: string
  /** How the successor got its memory, and how old that was. */
  readonly how?: string
  readonly stateAge?: number
  readonly phases: readonly PhasePicture[]
}

export interface SetPicture {
  /** `namespace/name`. */
  readonly key: string
  readonly namespace: string
  readonly name: string
  readonly ready: boolean
  readonly primaries: CountPicture
  readonly hotBackups: CountPicture
  readonly coldBackups: CountPicture
  /** Absent: the set keeps no memory. */
  readonly memory?: { readonly mode: string; readonly interval: string }
  readonly slots: readonly SlotPicture[]
  readonly troubles: readonly TroublePicture[]
  /** Newest first. */
  readonly timeline: readonly Happening[]
  /** The set allows drills. */
  readonly drill: boolean
}

/** The news of a set. Most changes concern a few of its slots. */
export interface SetChange {
  readonly key: string
  /** Absent: they are as before. */
  readonly facts?: Omit<SetPicture, 'slots'>
  /** Those that are new or have changed. */
  readonly slots: readonly SlotPicture[]
  /** Numbers of those that are gone. */
  readonly goneSlots: readonly number[]
}

/** Sent as a line of JSON. */
export interface Message {
  readonly head: Head
  /** True: `sets` are all that there are, each with everything. */
  readonly whole: boolean
  /** Sets that are new or have changed. */
  readonly sets: readonly SetChange[]
  /** Keys of sets that are gone. */
  readonly gone: readonly string[]
}

export interface DrillRequest {
  readonly namespace: string
  readonly set: string
  readonly slot: number
}

export type DrillAnswer =
  | { readonly ok: true; readonly text: string }
  | { readonly ok: false; readonly text: string; readonly advice?: string }
