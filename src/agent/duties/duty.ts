/** What the agent of a node can be doing, each as data. */
import type { SlotLease } from '../../api/slot-lease.ts'
import type { Told } from '../../succession/age.ts'
import type { MemorySettings, PodView } from './snapshot.ts'

interface Common {
  /** Tells this duty from all others. */
  readonly key: string
  /** Another one means: what runs is for a world that is over, and begins again. */
  readonly version: string
  /** Uid of the pod whose memory it works on: of such duties one at a time. Absent: it touches no memory. */
  readonly memoryOf?: string
}

/** How an agent is reached, and known. */
export interface Peer {
  readonly address: string
  readonly fingerprint: string
}

/** The memory of a slot on another node, as its report says. */
export interface Elsewhere extends Peer, Told {}

export type Duty =
  /** A primary: its end is noticed at once, and the way to its heir is prepared. */
  | (Common & {
      readonly type: 'guard'
      readonly pod: PodView
      readonly lease: SlotLease
      /** Address to which connections go at its death; undefined: nowhere else. */
      readonly way: string | undefined
    })
  /** A primary whose memory others keep: saved again and again. */
  | (Common & {
      readonly type: 'checkpoint'
      readonly pod: PodView
      readonly lease: SlotLease
      readonly settings: MemorySettings
    })
  /** A primary that is to be replaced: it stands still, and its last generation is saved. */
  | (Common & {
      readonly type: 'handOver'
      readonly pod: PodView
      readonly lease: SlotLease
      readonly settings: MemorySettings
    })
  /** A slot whose generations are kept here: fetched from its source. */
  | (Common & {
      readonly type: 'hold'
      readonly lease: SlotLease
      readonly settings: MemorySettings
      readonly source: Peer
      /** Other nodes that have something of it, the newest first: where the source is gone they are all there is. */
      readonly others: readonly Elsewhere[]
      /** What the source says that it cannot give, and one of the others can. */
      readonly missed: Elsewhere | undefined
    })
  /** An understudy that the slot's Lease names, but whose containers do not run yet: its memory, meanwhile. */
  | (Common & { readonly type: 'fetch'; readonly lease: SlotLease; readonly others: readonly Elsewhere[] })
  /** An understudy in which the memory of a slot is kept frozen. */
  | (Common & {
      readonly type: 'freeze'
      readonly pod: PodView
      readonly lease: SlotLease
      readonly settings: MemorySettings
    })
  /** Memory of a kind that was never brought back here: once, to see that it can be. */
  | (Common & {
      readonly type: 'trial'
      readonly pod: PodView
      readonly lease: SlotLease
      readonly settings: MemorySettings
    })
  /** An understudy that no Lease names, in which nothing is to run: what does is ended. */
  | (Common & {
      readonly type: 'clear'
      readonly pod: PodView
      /** Nor is anything to lie there. Otherwise what lies there stopped may be of use again. */
      readonly frozenToo: boolean
      readonly lease?: undefined
    })
  /** An understudy that the slot's Lease names: on stage. */
  | (Common & {
      readonly type: 'promote'
      readonly pod: PodView
      readonly lease: SlotLease
      readonly settings: MemorySettings
      readonly others: readonly Elsewhere[]
    })
  /** A cold backup at its gate, which the operator wants to be told to open. */
  | (Common & { readonly type: 'wake'; readonly pod: PodView; readonly lease?: undefined })
  /** A cold backup at its gate: whoever tries to open it without being entitled to is noticed. */
  | (Common & { readonly type: 'attend'; readonly pod: PodView; readonly lease?: undefined })
  /** A primary that has died here: connections to it are led past it, and nothing of it runs on. */
  | (Common & {
      readonly type: 'redirect'
      readonly pod: PodView
      readonly lease: SlotLease
      /** Address to which they are led. */
      readonly to: string
      /** Nobody else holds its slot yet. */
      readonly isAwaited: boolean
    })
  /** An understudy on stage: its template's probes. Without Lease and settings: its set keeps no memory any more. */
  | (Common & {
      readonly type: 'probe'
      readonly pod: PodView
      readonly lease?: SlotLease
      readonly settings?: MemorySettings
    })
  /** A primary that is being deleted, or whose slot another one was called to: stopped before its successor runs. */
  | (Common & {
      readonly type: 'bury'
      readonly pod: PodView
      readonly lease: SlotLease
      readonly settings: MemorySettings
    })

export type DutyType = Duty['type']
export type DutyOf<T extends DutyType> = Extract<Duty, { type: T }>
