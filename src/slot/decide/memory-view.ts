import type { CloneOf } from '../../api/clone-of.ts'
import type { Voter } from '../../api/fence.ts'
import type { SlotReport } from '../../api/node-report.ts'
import type { NumberedSlotLease } from '../../api/numbered-slot.ts'
import type { BroughtBack } from '../../api/pod-contract.ts'
import type { SlotKey } from '../../api/slot-key.ts'
import type { GrantState } from './grant-state.ts'
import type { Machine } from './machine-fit.ts'

/** Facts about one pod of a set that keeps memory, beside those of every pod. */
export interface StageView {
  /** Made for memory: the agents know how to save it, and an understudy only holds the place. */
  readonly keeps: boolean
  /** Created as an understudy: it runs only an app that an agent restores. */
  readonly understudy: boolean
  /**
   * The slot that it was made for, because no backup was left. No other slot may have the pod until that slot has a
   * primary.
   */
  readonly successorOf: number | undefined
  /** Uid of the Migration that it was made for. */
  readonly madeFor?: string
  /** It was made while that slot had its primary, and may not run on each node that the template allows. */
  readonly confined?: boolean
  /** That slot has its primary, or the set has no place for the slot: it needs this pod no more. */
  readonly errandOver?: boolean
  /** The app has ended and its memory is gone. An app that the kubelet starts in its place is another one. */
  readonly died: boolean
  /** Its agent has ended that app, or has not seen how it ended. */
  readonly ended?: true
  /** How often the kubelet has restarted those of its containers whose memory is saved. */
  readonly restarts: number
  /** The ids of its running containers, in the form of `containerIdsOf`. */
  readonly containers: string | undefined
  /** The understudy runs other containers than its agent reported on stage; `Partly`: and some of those, too. */
  readonly replaced: 'No' | 'Partly' | 'Wholly'
  /** The app of this pod is on stage and answers. */
  readonly serving: boolean
  /** Its agent has told that the app of this understudy is about to run, and has not told since that it does not. */
  readonly resuming: boolean
  /**
   * Ms for which this process has seen that the agent reports the pod as serving while Kubernetes does not call it
   * Ready.
   */
  readonly unpublishedMs: number | undefined
  /** The kubelet reports it Ready, too: Services that select the pod lead to it. */
  readonly selectable: boolean
  /** The Lease of a slot names this pod, but its label does not say so yet. */
  readonly promoting: boolean
  /** The agent cannot restore anything in it any more. */
  readonly spoiled: boolean
  /** Why it did not come on stage when it was last called; undefined if it was not called, or came. */
  readonly failed: string | undefined
  /** It failed only because it did not answer in time: it may run by now, and may still answer. */
  readonly late?: boolean
  readonly ip: string | undefined
  /** A client asked to hand its slot over to another pod, with its memory. */
  readonly handoverRequested?: boolean
  /** The memory that it can be given, as a restore hash; undefined for pods made before this label existed. */
  readonly restoreHash: string | undefined
  /** The memory that was restored in it. */
  readonly memory: BroughtBack | undefined
}

/** One slot whose Lease exists. */
export interface SlotMemory {
  readonly lease: NumberedSlotLease
  /** Uid of the Lease. */
  readonly uid: string
  /** resourceVersion of the Lease; the next write to it is a compare-and-swap on this. */
  readonly resourceVersion: string
  /** Restarts of the primary's containers when this incarnation began: after one more, another app runs in it. */
  readonly restarts: number | undefined
  /** The interval that the set asks for. */
  readonly intervalMs: number
  /**
   * Monotonic ms since which this process has seen that the primary runs other containers than those of this incarnation, or
   * none of them. Its agent reports that sooner, if it runs.
   */
  readonly replacedSince: number | undefined
  /** True if the primary may still run some of the containers of this incarnation beside others. */
  readonly remains?: boolean
  /** Monotonic ms since which this process has seen no primary that continues with this memory. */
  readonly vacantSince: number | undefined
  /** The same, but only from the end of a primary that is being deleted on: it may serve until then. */
  readonly endedSince: number | undefined
  /**
   * Monotonic ms since which this process has seen that the set has no place for the slot and its memory is only kept.
   */
  readonly retainedSeenAt?: number | undefined
  /**
   * Until when to wait for the primary's agent to report that its app has stopped, monotonic ms. Defined while the
   * primary's pod is being deleted, or is gone and has a fence, and there is no such report.
   */
  readonly holderGoesBy: number | undefined
  /** The node of the Lease's pod counts as lost, at the pace of Kubernetes or because it is out of service. */
  readonly isNodeLost?: boolean
  /** The report of the primary's own node. */
  readonly source: SlotReport | undefined
  /** The primary's own node has memory of this incarnation, by the reports and the Lease. */
  readonly sourceKeeps: boolean
  /**
   * Monotonic ms at which this process first saw the source's generation; undefined while its agent is silent, or
   * starts.
   */
  readonly sourceSeenAt?: number | undefined
  /** Monotonic ms since which this process has seen that the primary is to be terminated. */
  readonly endingSince?: number | undefined
  /**
   * Monotonic ms since which this process has seen that the Lease's pod is called and not on stage; undefined if it is
   * not.
   */
  readonly calledSince?: number | undefined
  /** The same, but counted over all pods that were called to the slot one after the other. */
  readonly comingSince?: number | undefined
  /** Monotonic ms since which this process has seen that the called pod resumes; undefined if its agent has not told that. */
  readonly resumingSince?: number | undefined
  /**
   * Monotonic ms before this process requested the handover that the Lease asks for; undefined: another process did, or
   * the Lease asks for none.
   */
  readonly handoverRequestedAt?: number | undefined
  /** Monotonic ms since which this process has seen that its Lease asks for no handover; undefined while it does. */
  readonly settledSince?: number | undefined
  /** Monotonic ms since which this process has seen that its primary is not stopped by its voters; undefined while it is, or may be. */
  readonly unfencedSince?: number | undefined
  /** Nodes that keep memory of this incarnation, whether it could be restored now or not. */
  readonly copies: readonly Copy[]
  /** Nodes that may keep memory of it, and have neither shown a copy nor reported that they have none. */
  readonly unasked: readonly Unasked[]
  /**
   * Nodes without a copy whose agents may be fetching one: holders, and nodes that are no holders any more and have not
   * reported since that they have ended.
   */
  readonly fetching?: readonly string[]
  /**
   * Monotonic ms since which this process has seen that the first memory of a clone does not come: the node that is to copy it says
   * why it has none to use; or once a pod was called, all nodes that may have it are silent.
   */
  readonly uncopiedSince?: number | undefined
  /** Absent: its Lease has no voters. */
  readonly votes?: Votes | undefined
  readonly grants?: GrantState
}

/** The statements about the primary of a slot in the present term, as this process knows them. */
export interface Votes {
  /** The voters that have stated silence, or answer no more because their run is over. */
  readonly silent: ReadonlySet<Voter>
  /** Monotonic ms at which the next voter whose run is over will be among them; undefined: there is none. */
  readonly overAt?: number | undefined
  /** Monotonic ms at which this process first saw this term. */
  readonly termSeenAt: number
  /** Monotonic ms at which this process first saw the statement of a node in this term; undefined: there is none. */
  readonly statedAt: number | undefined
  /** Monotonic ms at which it first saw the suspicion of a node that has stated that since; undefined: there is none. */
  readonly suspectedAt: number | undefined
  /** The agent of the primary's node has written a `nodeTimeout` after that, or later. */
  readonly isHeard: boolean
  /** Ms for which this process has seen no write of that agent, by its own clock alone. */
  readonly unheardMs: number
  /** This process has seen that agent write a short while ago, so that it can stop the primary. */
  readonly isReachable: boolean
}

export interface Unasked {
  readonly node: string
  /** Why nothing is known, as a phrase to follow the node's name. */
  readonly why: string
  /** No report, and not the Lease, says that the node has ever had a copy; it is a holder, and may have fetched one. */
  readonly isGuess?: boolean
}

/** The memory of one slot on one node. */
export interface Copy {
  readonly node: string
  readonly report: SlotReport
  /** Monotonic ms at which this process first saw this generation reported. */
  readonly seenAt: number
  /** The agent is silent, or starts: its last report may not be true any more. */
  readonly stale: boolean
  /** The agent has not written for a while. An agent that only starts is stale, and not silent. */
  readonly silent?: boolean
  /** The agent has written so recently that it could have withdrawn its report. */
  readonly timely: boolean
}

export interface NodeView {
  readonly name: string
  readonly ready: boolean
  /**
   * The node is not ready, but was a short while ago: its agent is being replaced, and copies there stay assigned to
   * it.
   */
  readonly away?: boolean
  /** Its agent has not written for so long that it may be gone. */
  readonly silent?: boolean
  /** The first check that fails, with its cure. */
  readonly problem: string | undefined
  /** The reason why generations are not written to its disk; undefined if they are, or if it has no disk. */
  readonly diskTrouble?: string | undefined
  /** The set's memory must not be kept on it: the set's template may not run there. */
  readonly forbidden?: boolean
  /**
   * No new pod of the set should be made for this node now: the template may not run there, the node takes no pods at
   * the moment, or its agent has not written in time.
   */
  readonly closed?: boolean
  /** Fingerprint of the key with which its agent signs; undefined if it does not sign, or is not known. */
  readonly signer?: string | undefined
  /** Its agent can copy memory of one slot for another. */
  readonly clones?: boolean
  /** The machine as far as memory depends on it; undefined if not reported yet. */
  readonly machine?: Machine | undefined
  readonly vote?: NodeVote | undefined
  /** An administrator or a remediation says that nothing runs there any more: see `isOutOfService`. */
  readonly outOfService?: boolean
}

/** The facts about a node that votes need: its sentinel, and its report, by which the API server votes. */
export interface NodeVote {
  /** The run of its sentinel; undefined: that neither votes nor is voted on. */
  readonly run: string | undefined
  /** Uid of the report. */
  readonly uid: string
  /** Version of the report. */
  readonly resourceVersion: string
  /** How often the API server has stated that the primaries of the node are silent. */
  readonly silences: number
}

/** A reason with its message. */
export interface Word {
  readonly reason: string
  readonly message: string
}

/** The slot that has the memory with which new slots begin. */
type SourceSlot = Pick<SlotKey, 'name' | 'incarnation'>

/** Why there is no memory with which new slots could begin. */
export type NoSource = Word & { readonly slot?: SourceSlot }

/** Memory with which new slots begin. */
export interface CloneSource {
  readonly slot: SourceSlot
  readonly pod: string
  readonly podUid: string
  readonly restoreHash: string | undefined
  /** At least one: each on a node that can copy it, best first. */
  readonly copies: readonly CloneOf[]
}

export interface MemoryView {
  /** Only for a set with `cloneFrom`, while a slot of it may need that. */
  readonly cloneSource?: CloneSource | NoSource | undefined
  /** Monotonic ms since which this process has seen that slots are to begin with other memory, and none has begun; undefined: none is to. */
  readonly cloningSince?: number | undefined
  /** By slot; a slot without Lease has no memory. */
  readonly slots: ReadonlyMap<number, SlotMemory>
  readonly copies: number
  /** A slot without primary gives up memory that is kept after this time, ms. Undefined: never. */
  readonly giveUpAfterMs?: number | undefined
  /** How long a node with primaries may be silent, ms; absent: no slot has voters. */
  readonly nodeTimeoutMs?: number | undefined
  /** Which grants heirs get. Absent: none. */
  readonly grantee?: 'Announced' | 'Heir'
  /** Ms for which nothing is decided by votes, because most nodes are silent at once, or were a moment ago. Absent: 0. */
  readonly heldMs?: number
  /** How long the memory of slots is kept for which the set has no place, ms; absent: not at all. */
  readonly retainMs?: number
  /** Every node with an agent, by name. */
  readonly nodes: ReadonlyMap<string, NodeView>
  /**
   * Slots whose Lease belongs to another owner, a deleted set of this name. The slot waits until that Lease is gone.
   */
  readonly foreign?: ReadonlySet<number>
  /** Why no memory may be saved, with the cure. Present copies stay for a while, because the cause may pass. */
  readonly refused?: Word | undefined
  /** The refusal has lasted: no node keeps memory of the set's slots any more. */
  readonly refusedForLong?: boolean
  /** Warnings about memory that is kept. */
  readonly caveats?: readonly Word[]
}
