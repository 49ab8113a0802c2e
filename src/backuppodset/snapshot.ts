import type { LastFailover } from '../api/backuppodset.ts'
import type { PodKind } from '../api/labels.ts'
import type { ParsedSet } from '../api/parse.ts'
import type { MemoryView, StageView } from './memory/view.ts'
import type { PulledPod, PulledView } from './pulled/view.ts'
import type { RevisionsView } from './revisions/observe.ts'
import type { ServicesView } from './services/view.ts'

/**
 * Where a cold pod's gate stands.
 * `none`: the pod has no gate. `starting`: not listening yet. `waiting`: listens for its wake message.
 * `open`: it has let the pod go on, which cannot be taken back.
 */
export type GateState = 'none' | 'starting' | 'waiting' | 'open'

/** No epoch is higher: the most that can be read back from the annotation. */
export const lastEpoch = 999_999_999

/** Which pod, at which version: enough to write to it with preconditions. */
export interface PodRef {
  readonly name: string
  readonly uid: string
  readonly resourceVersion: string
}

/** One pod of a set as the rules see it; made from a Pod by `viewOf`, never changed. Times are in ms since the epoch. */
export interface PodView extends PodRef {
  /** The kind that counts. For a pod whose wake-up is under way this is the kind it is woken as. */
  readonly kind: PodKind
  readonly slot: number | undefined
  /** Grows with each promotion of a slot; 0 where the pod carries none. */
  readonly epoch: number
  readonly node: string | undefined
  readonly createdAt: number
  readonly ready: boolean
  /** Since when the pod is not Ready although it could be: not counted from before its gate opened. */
  readonly unreadySince: number | undefined
  /** It has been Ready at least once. */
  readonly served: boolean
  /** The kubelet holds back the restart of one of its containers (CrashLoopBackOff). */
  readonly crashLooping: boolean
  /** Why it does not start, in the words of scheduler and kubelet; absent where nothing stands in its way. */
  readonly stuck?: string
  /** How a container of a pod that is crash looping or unready ended last, for people. */
  readonly lastEnd?: string
  readonly gate: GateState
  /** A wake-up that this process began has not ended yet. */
  readonly waking: boolean
  readonly templateHash: string | undefined
  /** What its deletion costs, as people or their programs have written on it; absent: 0. */
  readonly deletionCost?: number
  /** How much a model outside wants it; absent where none has said so. */
  readonly preference?: number
  /** Where the pod stands with regard to memory; only of pods of sets that keep it. */
  readonly stage?: StageView
  /** Where it stands with regard to pulled state; only of pods of sets that pull it. */
  readonly pulled?: PulledPod
}

/** A primary that is gone or going: what its successor inherits and what the status will say of it. */
export interface LostPrimary {
  readonly name: string
  readonly slot: number
  readonly epoch: number
  readonly reason: LossReason
  /** What is known of it beside, for people: with the pod its logs go, too. */
  readonly why?: string
  /** Monotonic ms at which this process first saw the loss. */
  readonly seenAt: number
}

export type LossReason = 'PodDeleted' | 'PodFinished' | 'Died' | 'Unready' | 'CrashLoop' | 'Replaced'

/** Everything one pass decides from; frozen, and complete: the rules read nothing else. */
export interface Snapshot {
  readonly set: ParsedSet
  readonly templateHash: string
  /** Of the template, where memory is kept. */
  readonly restoreHash?: string | undefined
  /** The templates that the set had; absent where it keeps no memory, and while they are not known. */
  readonly revisions?: RevisionsView
  /** Live pods of the set: owned (or about to be adopted), not being deleted, not finished. */
  readonly pods: readonly PodView[]
  /** Live pods without owner that carry this set's labels; they are in `pods` too. */
  readonly orphans: readonly PodView[]
  /** Pods that this set owns and whose labels say that it should not. */
  readonly strays: readonly PodRef[]
  /** Owned pods that ended (phase Failed or Succeeded) and only take up a name. */
  readonly finished: readonly PodView[]
  /** Highest epoch ever seen for a slot, over all pods that still exist, also those being deleted. */
  readonly epochs: ReadonlyMap<number, number>
  /** Losses not yet repaired, by slot. */
  readonly lost: ReadonlyMap<number, LostPrimary>
  /** What has happened to the slots lately, newest first. */
  readonly failovers?: readonly LastFailover[]
  /** No pass of this set was ever reported: every pod is made with `strategy.init`. */
  readonly isNew: boolean
  /** Wall clock, ms; compared with times that the API server wrote. */
  readonly now: number
  /** Monotonic clock, ms; for durations. */
  readonly monotonicNow: number
  /** What is known of the slots' memory; absent for sets that keep none. */
  readonly memory?: MemoryView
  /** States that were pulled from primaries; absent for sets that pull none. */
  readonly pulled?: PulledView
  /** Slots with a Lease of a set that keeps no memory any more. */
  readonly formerSlots?: readonly {
    readonly slot: number
    readonly lease: { readonly uid: string; readonly resourceVersion: string }
  }[]
  /** Services and their endpoints as they are; absent where there are none and none are wished for. */
  readonly services?: ServicesView
  /** Losers of a promotion, off stage: they only wait for the last connections through them to end. */
  readonly retired?: readonly RetiredPod[]
}

export interface RetiredPod extends PodView {
  /** Monotonic ms since which this process has seen the successor on stage; undefined while it is not. */
  readonly succeededAt: number | undefined
}
