import type { SlotReport } from '../../api/node-report.ts'
import type { SlotLease } from '../../api/slot-lease.ts'
import type { BroughtBack } from '../../api/stage.ts'
import type { Machine } from '../../succession/placement.ts'

/** One pod of a set that keeps memory, beside what every pod of a set has. */
export interface StageView {
  /** Made for memory: the agents know how to save it, and an understudy only holds the stage. */
  readonly keeps: boolean
  /** Born as an understudy: nothing of it runs but what an agent restores. */
  readonly understudy: boolean
  /** The slot that it was made for, because no backup was left; no other slot may have it until that one has a primary. */
  readonly successorOf: number | undefined
  /** That slot has its primary, or the set has no place for it: it needs this pod no more. */
  readonly errandOver?: boolean
  /** The app has ended and its memory is gone. What the kubelet starts in its place is somebody else. */
  readonly died: boolean
  /** How often the kubelet has started containers of it again whose memory is saved. */
  readonly restarts: number
  /** Which of them run, as `containerIdsOf` says them. */
  readonly containers: string | undefined
  /** An understudy that is said to be on stage runs other containers than those that were brought there. */
  readonly replaced: boolean
  /** The app of this pod is on stage and answers. */
  readonly serving: boolean
  /** Ms for which this process has seen that it serves by the word of its agent, and is not Ready by that of Kubernetes. */
  readonly unpublishedMs: number | undefined
  /** The kubelet knows it, too: Services that select the pod lead to it. */
  readonly selectable: boolean
  /** The Lease of a slot names this pod, but its label does not say so yet. */
  readonly summoned: boolean
  /** Its agent can bring nothing back in it any more. */
  readonly spoiled: boolean
  /** Why it did not come on stage when it was last called; undefined where it was not, or came. */
  readonly failed: string | undefined
  /** It failed only because it did not answer in time: it may run by now, and answer yet. */
  readonly late?: boolean
  readonly ip: string | undefined
  /** Somebody asked for its slot to go to another pod, memory and all. */
  readonly handoverRequested?: boolean
  /** What memory it can be given; undefined of pods that were made before this was written on them. */
  readonly restoreHash: string | undefined
  /** Which memory it has gone on with. */
  readonly memory: BroughtBack | undefined
}

/** One slot whose Lease exists. */
export interface SlotMemory {
  readonly lease: SlotLease
  /** Of the Lease. */
  readonly uid: string
  /** Of the Lease; the next write to it is a compare-and-swap on this. */
  readonly resourceVersion: string
  /** Restarts that the holder had when this life began: one more, and what runs in it is another one. */
  readonly restarts: number | undefined
  /**
   * Monotonic ms since which this process has seen that the holder runs other containers than those of this life, or none
   * of them. Its agent says it sooner, if it is there.
   */
  readonly replacedSince: number | undefined
  /** Monotonic ms since which this process has seen no primary that goes on with this memory. */
  readonly vacantSince: number | undefined
  /** Monotonic ms since which this process has seen that the set has no place for it and its memory is only kept. */
  readonly retainedSeenAt?: number | undefined
  /** The holder's pod still exists but is going, and its agent has not said that its app is stopped: until when that is waited for, monotonic ms. */
  readonly holderGoesBy: number | undefined
  /** What the primary's own node says. */
  readonly source: SlotReport | undefined
  /** The primary's own node has something of this life, as far as anybody has said. */
  readonly sourceKeeps: boolean
  /** Monotonic ms at which this process first saw the source's generation; undefined while its agent is silent, or starts. */
  readonly sourceSeenAt?: number | undefined
  /** Monotonic ms since which this process has seen that the holder is to be ended. */
  readonly endingSince?: number | undefined
  /** Monotonic ms since which this process has seen that the holder is called and not on stage; undefined where it is not. */
  readonly calledSince?: number | undefined
  /** Likewise, but of all that were called to it one after the other. */
  readonly comingSince?: number | undefined
  /** Monotonic ms since which this process has seen that its Lease asks for no handover; undefined while it does. */
  readonly settledSince?: number | undefined
  /** Nodes that keep something of this life, whether it could be brought back now or not. */
  readonly copies: readonly Copy[]
  /** Nodes that may keep something of it, and have neither shown it nor said that they have nothing. */
  readonly unasked: readonly Unasked[]
  /**
   * Nodes without a copy whose agents may be fetching one: holders, and nodes that are no holders any more and have not
   * reported since.
   */
  readonly fetching?: readonly string[]
}

export interface Unasked {
  readonly node: string
  /** Why nothing is known, to be read after the node's name. */
  readonly why: string
}

/** The memory of one slot on one node. */
export interface Copy {
  readonly node: string
  readonly report: SlotReport
  /** Monotonic ms at which this process first saw this generation reported. */
  readonly seenAt: number
  /** The agent is silent, or starts: what it has said last may not be true any more. */
  readonly stale: boolean
  /** It has written so lately that it could have taken back what it said. */
  readonly timely: boolean
}

export interface NodeView {
  readonly name: string
  readonly ready: boolean
  /** It is not ready, but was a short while ago: its agent is being replaced, and what is kept there stays assigned to it. */
  readonly away?: boolean
  /** The first check that fails, with its cure. */
  readonly problem: string | undefined
  /** Why generations are not written to its disk, as a reason; undefined: they are, or there is none. */
  readonly diskTrouble?: string | undefined
  /** The set's memory may not lie there: its template may not run there. */
  readonly forbidden?: boolean
  /** Fingerprint of the key with which its agent signs; undefined: it does not, or is not known. */
  readonly signer?: string | undefined
  /** What memory finds there; undefined: not told yet. */
  readonly machine?: Machine | undefined
}

/** A reason with what to say of it. */
export interface Word {
  readonly reason: string
  readonly message: string
}

export interface MemoryView {
  /** By slot; a slot without Lease has no memory. */
  readonly slots: ReadonlyMap<number, SlotMemory>
  readonly copies: number
  /** After so long without a primary a slot gives up memory that is kept. Undefined: never. */
  readonly giveUpAfterMs?: number | undefined
  /** So long the memory of slots is kept for which the set has no place, ms; absent: not at all. */
  readonly retainMs?: number
  /** Every node with an agent, by name. */
  readonly nodes: ReadonlyMap<string, NodeView>
  /** Slots for which there is a Lease of another owner: of a set of this name that was deleted. It is waited for. */
  readonly foreign?: ReadonlySet<number>
  /** Why nothing is to be saved, with the cure. What is kept stays for a while: it may pass. */
  readonly refused?: Word | undefined
  /** And that has lasted: no node keeps anything of the set's slots any more. */
  readonly refusedForLong?: boolean
  /** What to know of memory that is kept. */
  readonly caveats?: readonly Word[]
}
