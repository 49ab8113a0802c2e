/** Slots and the pods that could take them, as the rules of slots see them. */
import type { PodKind } from '../../api/labels.ts'
import type { MemoryView, StageView } from './memory-view.ts'
import type { PodRef } from './pod-ref.ts'
import type { PulledPod } from './pulled-view.ts'

/**
 * State of a cold pod's gate.
 * `none`: the pod has no gate. `starting`: not listening yet. `waiting`: listens for its wake message.
 * `open`: it has let the pod continue, which is irreversible.
 */
export type GateState = 'none' | 'starting' | 'waiting' | 'open'

/** The highest epoch: the largest number that the annotation can hold. */
export const lastEpoch = 999_999_999

/** A pod that has a slot or could take one. Created from a Pod by `candidateOf`, immutable. Times are in ms since the epoch. */
export interface Candidate extends PodRef {
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
  readonly gate: GateState
  /** A wake-up that this process started is still running. */
  readonly waking: boolean
  /** The pod's state with regard to memory; only for pods whose owner keeps memory. */
  readonly stage?: StageView
  /** The pod's state with regard to pulled state; only for pods whose owner pulls it. */
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

export const lossReasons = [
  'PodDeleted',
  'PodFinished',
  'Died',
  /** Its app has ended, and not by itself as far as is known: its agent ended it, or its node was restarted. */
  'Ended',
  /** Its node is silent, and its voters have made sure that it does not serve. */
  'NodeLost',
  'Unready',
  'CrashLoop',
  'Replaced',
] as const
export type LossReason = (typeof lossReasons)[number]

/** Everything that the rules of slots read. */
export interface SlotSnapshot {
  /** Live pods of the owner. */
  readonly pods: readonly Candidate[]
  /** Losses that are not repaired yet, by slot. */
  readonly lost: ReadonlyMap<number, LostPrimary>
  /** The slots' memory and the nodes, as far as known; absent if the owner keeps none. */
  readonly memory?: MemoryView
  /** Wall clock, ms; compared with times that the API server wrote. */
  readonly now: number
  /** Monotonic clock, ms; for durations. */
  readonly monotonicNow: number
}

/** A pod that has been called to no slot and waits at its gate, or whose gate is yet to start. */
export const isGated = ({ gate }: Pick<Candidate, 'gate'>): boolean =>
  gate === 'starting' || gate === 'waiting'
