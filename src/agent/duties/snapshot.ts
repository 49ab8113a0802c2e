/** What the agent knows of the world when it decides what it should be doing. Plain data: see `dutiesOf`. */
import type { PodTemplate } from '../../api/backuppodset.ts'
import type { ParsedLiveness, ParsedMemory } from '../../api/memory.ts'
import type { NodeReportStatus } from '../../api/node-report.ts'
import type { SlotLease } from '../../api/slot-lease.ts'
import type { Machine } from '../../succession/placement.ts'

export interface ContainerView {
  readonly name: string
  /** `containerd://...`; absent until the runtime has made one. */
  readonly containerId: string | undefined
  readonly imageId: string
  readonly running: boolean
  /** Wall clock, ms. */
  readonly startedAt: number | undefined
  /** How often the kubelet has started it again. Absent: not known. */
  readonly restarts?: number
  /** Limit of its memory, bytes; absent: none. */
  readonly memoryLimit: number | undefined
}

/** A pod of this node that belongs to a set. */
export interface PodView {
  readonly namespace: string
  readonly name: string
  readonly uid: string
  /** `namespace/name` of its set. */
  readonly set: string
  /** Label `type`: primary, hotbackup, ..., retired. */
  readonly kind: string
  /** Number of the slot that it holds or held, by its label; the Lease is what counts. */
  readonly slot: number | undefined
  readonly epoch: number
  readonly ip: string | undefined
  /** It was made because a slot had no backup left. */
  readonly madeForSlot: boolean
  /** Its containers only hold the stage, until something is brought back in them. */
  readonly understudy: boolean
  readonly ready: boolean
  readonly terminating: boolean
  /** The condition `serving`, as last seen. */
  readonly serving: Stamp | undefined
  /** The condition `understudy`, as last seen. */
  readonly understudyState: Stamp | undefined
  readonly containers: readonly ContainerView[]
  /** The gate of a cold backup, while it waits. */
  readonly gate: GateView | undefined
  /** Somebody has asked with this word for a checkpoint now. */
  readonly checkpointRequest?: string | undefined
  /** Somebody wants with this word that its slot goes to another pod. */
  readonly handoverRequest?: string | undefined
  /** What memory it can be given, and what its own could be given to; absent: made before this was written on pods. */
  readonly restoreHash?: string | undefined
  /** Its saved containers as its own template has them, with their probes; absent likewise. */
  readonly apps?: readonly App[] | undefined
}

export interface GateView {
  readonly containerId: string
  /** What it is to be told, as the operator has written it: `KIND TOKEN`. Absent: nothing. */
  readonly order: string | undefined
}

export type App = NonNullable<PodTemplate['spec']>['containers'][number]

export interface Stamp {
  readonly status: string
  readonly reason: string
  readonly message: string
}

/** A set that keeps memory, as far as agents care. */
export interface MemorySettings extends ParsedMemory {
  /** How the liveness of its primaries is asked; absent: as the template's probe says. */
  readonly liveness: ParsedLiveness | undefined
  readonly template: PodTemplate
  /** Nothing is done for it: who ends is not succeeded. */
  readonly paused: boolean
  /** Of the set's template as it is now; pods may be of an earlier one, see `restoreHashOf`. */
  readonly restoreHash: string
}

/** The newest generation of a slot on this node that could be brought back. */
export interface Kept {
  readonly epoch: number
  readonly generation: number
  readonly restoreHash: string
  /** Nothing of its primary came after it. */
  readonly final?: boolean
  /** Pod it was taken from. */
  readonly podUid: string
  /** Wall clock of the source, ms. */
  readonly takenAt: number
  /** Bytes of memory by container. */
  readonly memory: ReadonlyMap<string, number>
  /** On what it was made; absent: not compared. */
  readonly machine?: Machine
  /** What each container ran; absent: not compared. */
  readonly imageIds?: ReadonlyMap<string, string>
}

/** What lies in an understudy of this node. */
export interface StageView {
  /** `slotName` of whose memory it is. */
  readonly slot: string
  readonly epoch: number
  readonly generation: number
  /** `Thawed`: it runs, but nobody has been told. `OnStage`: it answered, and its pod's condition says so. */
  readonly state: 'Frozen' | 'Thawed' | 'OnStage'
}

export interface Snapshot {
  readonly node: string
  /** Memory can be saved and restored here. */
  readonly able: boolean
  /** What memory finds here; absent: not compared. */
  readonly machine?: Machine
  /** Tells the sentinel that runs from the ones before it: a new one watches nothing yet. */
  readonly sentinel: string
  readonly pods: readonly PodView[]
  readonly slots: readonly SlotLease[]
  /** Restarts of the holder's containers when the life of its slot began, by `slotName`; absent: not known. */
  readonly restarts?: ReadonlyMap<string, number>
  /** By `namespace/name` of the set; sets that keep no memory are absent. */
  readonly settings: ReadonlyMap<string, MemorySettings>
  /** Sets that are there and keep no memory, or none any more, likewise. */
  readonly memoryless: ReadonlySet<string>
  /** Reports by node, this node's own left out. */
  readonly reports: ReadonlyMap<string, NodeReportStatus>
  /** By `slotName`. */
  readonly kept: ReadonlyMap<string, Kept>
  /** By uid of the understudy, of the containers it has now. */
  readonly stages: ReadonlyMap<string, StageView>
  /** Understudies in which nothing can be brought back any more, by uid. */
  readonly spoiled?: ReadonlySet<string>
  /** Kinds of memory (restore hashes) that this node has brought back at least once. */
  readonly proven: ReadonlySet<string>
  /** Pods that died, by uid, and whose memory (`slotName`) ended with them; whether the API server knows it yet or not. */
  readonly dead: ReadonlyMap<string, string>
  /** Slots (`slotName`) whose primaries here are not to stand still for a successor for now: they did, in vain. */
  readonly handoversPaused: ReadonlySet<string>
}
