import type { Completion } from '../api/backuppodset.ts'
import type { ParsedSet } from '../api/parse.ts'
import type { SlotPolicy } from '../api/slot-policy.ts'
import type { LastFailover } from '../api/slot-status.ts'
import type { ServicesView } from '../slot/decide/endpoints-view.ts'
import type { Move } from '../slot/decide/move.ts'
import type { PodRef } from '../slot/decide/pod-ref.ts'
import type { PulledView } from '../slot/decide/pulled-view.ts'
import type { Candidate, SlotSnapshot } from '../slot/decide/snapshot.ts'
import type { RevisionsView } from './revisions/observe.ts'

/** A pod of a set as the rules see it. Created from a Pod by `viewOf`, immutable. */
export interface PodView extends Candidate {
  /** The kubelet holds back the restart of one of its containers (CrashLoopBackOff). */
  readonly crashLooping: boolean
  /** Why it does not start, in the words of the scheduler or kubelet; absent if nothing blocks it. */
  readonly stuck?: string
  /** How a container of a crash-looping or unready pod last ended, for display. */
  readonly lastEnd?: string
  /** Its agent has reported its death, and for this time after it, ms, the kubelet may say that it has ended with success. */
  readonly endUntold?: number
  readonly templateHash: string | undefined
  /** Cost of its deletion, as an annotation from users or their programs states it; absent: 0. */
  readonly deletionCost?: number
  /** How strongly an external model prefers it; absent if no model has set it. */
  readonly preference?: number
}

/** Everything that one pass decides from; frozen and complete: the rules read nothing else. */
export interface Snapshot extends SlotSnapshot {
  readonly set: ParsedSet
  /** For a set whose pods are numbered: the highest number that is known to be used; -1: none. */
  readonly lastNumber?: number
  readonly templateHash: string
  /** Hash of the template's parts that a restore depends on, if the set keeps memory. */
  readonly restoreHash?: string | undefined
  /** The policy for the Leases of its slots; absent if the set keeps no memory. */
  readonly policy?: SlotPolicy | undefined
  /** `set` is only the readable part of an invalid spec, and this process has accepted none before. */
  readonly isSpecPartial?: boolean
  /** Earlier templates of the set; absent if it keeps no memory, and while they are unknown. */
  readonly revisions?: RevisionsView
  /** Live pods of the set: owned (or about to be adopted), not being deleted, not finished. */
  readonly pods: readonly PodView[]
  /** Live pods without owner that carry this set's labels; also in `pods`. */
  readonly orphans: readonly PodView[]
  /** Pods that this set owns although their labels say otherwise. */
  readonly strays: readonly PodRef[]
  /** Owned pods that ended (phase Failed or Succeeded) and only take up a name. */
  readonly finished: readonly PodView[]
  /** Highest epoch ever seen for each slot, from all existing pods including those being deleted. */
  readonly epochs: ReadonlyMap<number, number>
  /** Recent failovers of the slots, newest first. */
  readonly failovers?: readonly LastFailover[]
  /** The work of the set is done: no other pod continues. */
  readonly completed?: Completion
  /** That is not in the status yet, or not known: nothing is deleted or made until then. */
  readonly isHeld?: true
  /** No pass has reported this set yet: all its pods are created by `strategy.init`. */
  readonly isNew: boolean
  /** States pulled from primaries; absent for sets that pull none. */
  readonly pulled?: PulledView
  /** Slots that still have a Lease although the set no longer keeps memory. */
  readonly formerSlots?: readonly {
    readonly slot: number
    readonly lease: { readonly uid: string; readonly resourceVersion: string }
    readonly policy?: SlotPolicy | undefined
  }[]
  /** The hot backup that is to be replaced because it can be no heir; see `decide/stranded.ts`. */
  readonly stranded?: Stranded
  /** Existing Services and their endpoints; absent if there are none and none are wanted. */
  readonly services?: ServicesView
  /** Moves that Migrations ask for and that may begin; absent: none. */
  readonly moves?: readonly Move[]
  /** Retired pods, off stage: they only wait until the last connections through them end. */
  readonly retired?: readonly RetiredPod[]
}

/** A hot backup that no slot has a use for, while a slot has no heir. */
export interface Stranded {
  readonly uid: string
  /** Monotonic ms from which on it is to be replaced. */
  readonly dueAt: number
}

export interface RetiredPod extends PodView {
  /** Monotonic ms since which this process has seen the successor on stage; undefined while it is not on stage. */
  readonly succeededAt: number | undefined
}
