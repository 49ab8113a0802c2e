/** The agent's view of the world, from which `desiredTasks` decides. Plain data. */
import type { V1Container } from '@kubernetes/client-node'
import type { GrantWord } from '../../api/grant.ts'
import type { Least } from '../../api/least.ts'
import type { NodeReportStatus } from '../../api/node-report.ts'
import type { ServingRecord } from '../../api/pod-contract.ts'
import type { SlotKey } from '../../api/slot-key.ts'
import type { SlotLease } from '../../api/slot-lease.ts'
import type { Wire } from '../../kube/object.ts'
import type { Machine } from '../../slot/decide/machine-fit.ts'

export interface ContainerView {
  readonly name: string
  /** `containerd://...`; absent until the runtime has created the container. */
  readonly containerId: string | undefined
  readonly imageId: string
  readonly running: boolean
  /** Wall clock, ms. */
  readonly startedAt: number | undefined
  /** How often the kubelet has restarted it. Absent: not known. */
  readonly restarts?: number
  /** Memory limit, bytes; absent: none. */
  readonly memoryLimit: number | undefined
}

/** A pod of this node that belongs to a group. */
export interface PodView {
  readonly namespace: string
  readonly name: string
  readonly uid: string
  readonly resourceVersion: string
  /** See `groupOf`. */
  readonly group: string
  /** Uid of the object that owns it; absent: none yet. */
  readonly owner?: string
  /** By its label: primary, hotbackup, ..., retired. */
  readonly kind: string
  /** Name of the slot that it holds or held, by its labels. The Lease has the last word. */
  readonly slot: string | undefined
  readonly epoch: number
  readonly ip: string | undefined
  /** The operator created it because a slot had no backup left. */
  readonly madeForSlot: boolean
  /** Its containers only hold the place until a memory is restored in them. */
  readonly understudy: boolean
  readonly ready: boolean
  readonly terminating: boolean
  /** How long its apps do not know that it is being deleted; absent: it is not, or they may know. */
  readonly heldEnd?: {
    /** From its deletion on, ms. */
    readonly forMs: number
    /** By the clock of the API server, ms since the epoch. */
    readonly until: number
    /** When the kubelet kills them, by the same clock. */
    readonly killedAt: number
    /** All containers of the pod have the hook: those that are not saved do not end before them. */
    readonly isWhole: boolean
  }
  /**
   * The condition `serving`, as last seen. A dead pod has the status False here.
   *
   * heirAnswers: it is dead, and still in its Services, because its heir answers its connections.
   */
  readonly serving: (Stamp & { readonly record: ServingRecord; readonly heirAnswers?: true }) | undefined
  /** The condition `understudy`, as last seen. */
  readonly understudyState: Stamp | undefined
  readonly containers: readonly ContainerView[]
  /** The gate of a cold backup, while it waits. */
  readonly gate: GateView | undefined
  /** Value of the annotation with which a client requests a checkpoint now. */
  readonly checkpointRequest?: string | undefined
  /** Value of the annotation with which a client requests a handover of its slot. */
  readonly handoverRequest?: string | undefined
  /**
   * Hash of the memory that it can be given, and that its own memory has. A primary from before its set kept memory has
   * the hash of its slot's policy, and no hash while that policy is unknown.
   */
  readonly restoreHash?: string | undefined
  /** Its saved containers as in its own template, with their probes. */
  readonly apps: readonly App[]
}

export interface GateView {
  readonly containerId: string
  /** Order to the gate, as the operator has written it: `KIND TOKEN`. Absent: none. */
  readonly order: string | undefined
}

export type App = Wire<V1Container>

export interface Stamp {
  readonly status: string
  readonly reason: string
  readonly message: string
}

/** The newest generation of a slot on this node that could be restored. */
export interface Kept {
  readonly epoch: number
  readonly generation: number
  readonly restoreHash: string
  /** Its primary was stopped and made no generation after it. */
  readonly final?: boolean
  /** Pod from which it was dumped. */
  readonly podUid: string
  /** Wall clock of the source, ms. */
  readonly takenAt: number
  /** Bytes of memory by container. */
  readonly memory: ReadonlyMap<string, number>
  /** Machine on which it was dumped; absent: not compared. */
  readonly machine?: Machine
  /** Image of each container; absent: not compared. */
  readonly imageIds?: ReadonlyMap<string, string>
}

/** The promises and statements of this node's sentinel, as far as this agent knows them. */
export interface FenceView {
  /** Run of the sentinel as a voter; undefined: it neither votes nor is voted on. */
  readonly run: string | undefined
  /** Nodes with which the sentinel exchanges heartbeats. */
  readonly peers: ReadonlySet<string>
  /** By uid: pods that serve only while their voters answer. */
  readonly guarded: ReadonlyMap<string, Guarded>
  /** Uids of guarded pods that are stopped, because too few of their voters answer. */
  readonly fenced: ReadonlySet<string>
  /** Slots (`slotName`) for which the sentinel votes. */
  readonly votes: ReadonlySet<string>
  /** By slot: the latest term in which the sentinel has stated that the primary is silent. */
  readonly silent: ReadonlyMap<string, number>
  /** Terms in which this node will state that soon, by slot. */
  readonly suspects: ReadonlyMap<string, number>
}

export interface Guarded {
  readonly term: number
  /** The slot and the version that the sentinel has acknowledged; absent: an earlier agent has asked for it. */
  readonly acknowledged?: { readonly slot: string; readonly version: number }
}

/** One use of a grant by this agent, or its refusal. The latest one of a slot counts. */
export interface GrantRecord {
  readonly slot: SlotKey
  /** That of the primary that has died. */
  readonly epoch: number
  readonly number: number
  /** `Said`: this is the node of the dead primary. `Asked`: this is the node of the heir. */
  readonly role: 'Said' | 'Asked'
  /**
   * `Accepted`: the heir has the slot. `Refused`: the agent of the heir never accepts this number. `Prepared`: a
   * message to it may leave, and has not left yet. `Unknown`: it may have accepted. `Undelivered`: it has not heard of it, and
   * never will.
   */
  readonly answer: 'Accepted' | 'Refused' | 'Prepared' | 'Unknown' | 'Undelivered'
  readonly heir: {
    readonly name: string
    readonly uid: string
    readonly node: string
    readonly ip: string | undefined
  }
  /** Memory with which the heir continues at least. */
  readonly atLeast?: Least
  /** The agent tells the API server before the heir resumes. */
  readonly isAnnounced?: true
  /** Wall clock, ms. */
  readonly at: number
}

/** The grants that this agent has used or agreed to. */
export interface GrantsView {
  /** By slot: the latest one. */
  readonly records: ReadonlyMap<string, GrantRecord>
  /** By slot: the latest epoch in which this agent has seen the processes of the primary run here. */
  readonly alive: ReadonlyMap<string, number>
}

/** The clone in an understudy of this node. */
export interface StageView {
  /** `slotName` of its memory. */
  readonly slot: string
  readonly epoch: number
  readonly generation: number
  /** `Thawed`: it runs, but the agent has not reported it. `OnStage`: it answered, and its pod's condition says so. */
  readonly state: 'Frozen' | 'Thawed' | 'OnStage'
}

export interface Snapshot {
  readonly node: string
  /** This node can save and restore memory. */
  readonly able: boolean
  /** The machine that restored memory finds here; absent: not compared. */
  readonly machine?: Machine
  /** Distinguishes the sentinel that runs from earlier ones: a new one watches nothing yet. */
  readonly sentinel: string
  readonly pods: readonly PodView[]
  /** By these the agent acts: see `effectiveLease`. */
  readonly slots: readonly SlotLease[]
  /** Epochs of the slots as the API server has them. */
  readonly epochs: ReadonlyMap<string, number>
  /** Restarts of the holder's containers when the life of its slot began, by `slotName`; absent: not known. */
  readonly restarts?: ReadonlyMap<string, number>
  /** Reports by node, this node's own left out. */
  readonly reports: ReadonlyMap<string, NodeReportStatus>
  /** By `slotName`. */
  readonly kept: ReadonlyMap<string, Kept>
  /** By uid of the understudy, for its present containers. */
  readonly stages: ReadonlyMap<string, StageView>
  /** Understudies in which nothing can be restored any more, by uid. */
  readonly spoiled?: ReadonlySet<string>
  /** Kinds of memory (restore hashes) that this node has restored at least once. */
  readonly proven: ReadonlySet<string>
  /**
   * Pods that died, by uid, with the slot (`slotName`) of the memory that ended; the API server may not know it yet.
   */
  readonly dead: ReadonlyMap<string, string>
  /** Slots (`slotName`) whose primaries here must not be stopped for a successor for now: a handover has failed. */
  readonly handoversPaused: ReadonlySet<string>
  readonly fence: FenceView
  readonly grants: GrantsView
  /** The words of this node about the grants of slots. */
  readonly grantWords: ReadonlyMap<string, GrantWord>
}
