/** What the agent of a node can be doing, each as data. */
import type { SlotLease } from '../../api/slot-lease.ts'
import type { MemorySettings, PodView } from './snapshot.ts'

interface Common {
  /** Tells this duty from all others. */
  readonly key: string
  /** Another one means: what runs is for a world that is over, and begins again. */
  readonly version: string
  /** Uid of the pod whose memory it works on: of such duties one at a time. Absent: it touches no memory. */
  readonly memoryOf?: string
}

export type Duty =
  /** A primary: its end is noticed at once, and the way to its heir is prepared. */
  | (Common & { readonly type: 'guard'; readonly pod: PodView; readonly lease: SlotLease })
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
      readonly source: { readonly address: string; readonly fingerprint: string }
    })
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
  /** An understudy in which nothing is to lie: emptied, if something does. */
  | (Common & { readonly type: 'clear'; readonly pod: PodView; readonly lease?: undefined })
  /** An understudy that the slot's Lease names: on stage. */
  | (Common & {
      readonly type: 'promote'
      readonly pod: PodView
      readonly lease: SlotLease
      readonly settings: MemorySettings
    })
  /** An understudy on stage: its template's probes. */
  | (Common & {
      readonly type: 'probe'
      readonly pod: PodView
      readonly lease: SlotLease
      readonly settings: MemorySettings
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
