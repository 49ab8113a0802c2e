import type { PodKind } from '../api/labels.ts'
import type { ParsedSet } from '../api/parse.ts'
import type { SlotPolicy } from '../api/slot-policy.ts'
import type { LastFailover } from '../api/slot-status.ts'
import type { MemoryView, StageView } from './memory/view.ts'
import type { PulledPod, PulledView } from './pulled/view.ts'
import type { RevisionsView } from './revisions/observe.ts'
import type { ServicesView } from './services/view.ts'

/**
 * State of a cold pod's gate.
 * `none`: the pod has no gate. `starting`: not listening yet. `waiting`: listens for its wake message.
 * `open`: it has let the pod continue, which is irreversible.
 */
export type GateState = 'none' | 'starting' | 'waiting' | 'open'

/** The highest epoch: the largest number that the annotation can hold. */
export const lastEpoch = 999_999_999

/** A pod at a version: enough to write to it with preconditions. */
export interface PodRef {
  readonly name: string
  readonly uid: string
  readonly resourceVersion: string
}

/** A pod of a set as the rules see it. Created from a Pod by `viewOf`, immutable. Times are in ms since the epoch. */
export interface PodView extends PodRef {
  /** The effective kind. During a wake-up this is the kind that the pod is woken as. */
  readonly kind: PodKind
  readonly slot: number | undefined
  /** Grows with each promotion of a slot; 0 if the pod has none. */
  readonly epoch: number
  readonly node: string | undefined
  readonly createdAt: number
  readonly ready: boolean
  /** Since when the pod is not Ready although it could be; never earlier than the opening of its gate. */
  readonly unreadySince: number | undefined
  /** The pod has been Ready at least once. */
  readonly served: boolean
  /** The kubelet holds back the restart of one of its containers (CrashLoopBackOff). */
  readonly crashLooping: boolean
  /** Why it does not start, in the words of the scheduler or kubelet; absent if nothing blocks it. */
  readonly stuck?: string
  /** How a container of a crash-looping or unready pod last ended, for display. */
  readonly lastEnd?: string
  readonly gate: GateState
  /** A wake-up that this process started is still running. */
  readonly waking: boolean
  readonly templateHash: string | undefined
  /** Cost of its deletion, as an annotation from users or their programs states it; absent: 0. */
  readonly deletionCost?: number
  /** How strongly an external model prefers it; absent if no model has set it. */
  readonly preference?: number
  /** The pod's state with regard to memory; only for pods of sets that keep memory. */
  readonly stage?: StageView
  /** The pod's state with regard to pulled state; only for pods of sets that pull it. */
  readonly pulled?: PulledPod
}

/** A primary that no longer exists or is ending: data for its successor and for the status. */
export interface LostPrimary {
  readonly name: string
  readonly slot: number
  readonly epoch: number
  readonly reason: LossReason
  /** Further details for display: the pod's logs end with the pod. */
  readonly why?: string
  /** Monotonic ms at which this process first saw the loss. */
  readonly seenAt: number
}

export type LossReason = 'PodDeleted' | 'PodFinished' | 'Died' | 'Unready' | 'CrashLoop' | 'Replaced'

/** Everything that one pass decides from; frozen and complete: the rules read nothing else. */
export interface Snapshot {
  readonly set: ParsedSet
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
  /** Losses that are not repaired yet, by slot. */
  readonly lost: ReadonlyMap<number, LostPrimary>
  /** Recent failovers of the slots, newest first. */
  readonly failovers?: readonly LastFailover[]
  /** No pass has reported this set yet: all its pods are created by `strategy.init`. */
  readonly isNew: boolean
  /** Wall clock, ms; compared with times that the API server wrote. */
  readonly now: number
  /** Monotonic clock, ms; for durations. */
  readonly monotonicNow: number
  /** The slots' memory as far as known; absent for sets that keep none. */
  readonly memory?: MemoryView
  /** States pulled from primaries; absent for sets that pull none. */
  readonly pulled?: PulledView
  /** Slots that still have a Lease although the set no longer keeps memory. */
  readonly formerSlots?: readonly {
    readonly slot: number
    readonly lease: { readonly uid: string; readonly resourceVersion: string }
    readonly policy?: SlotPolicy | undefined
  }[]
  /** Existing Services and their endpoints; absent if there are none and none are wanted. */
  readonly services?: ServicesView
  /** Retired pods, off stage: they only wait until the last connections through them end. */
  readonly retired?: readonly RetiredPod[]
}

export interface RetiredPod extends PodView {
  /** Monotonic ms since which this process has seen the successor on stage; undefined while it is not on stage. */
  readonly succeededAt: number | undefined
}
