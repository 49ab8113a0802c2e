/** The tasks that a node's agent can have, as data. */
import type { CloneOf } from '../../api/clone-of.ts'
import type { Fence } from '../../api/fence.ts'
import type { GoRequest } from '../../api/grant.ts'
import type { Heartbeats } from '../../api/node-report.ts'
import type { SlotKey } from '../../api/slot-key.ts'
import type { SlotLease } from '../../api/slot-lease.ts'
import type { SlotPolicy } from '../../api/slot-policy.ts'
import type { Elsewhere, Peer } from '../observe/elsewhere.ts'
import type { GrantRecord, PodView } from '../observe/snapshot.ts'

interface Common {
  /** Distinguishes this task from all others. */
  readonly key: string
  /** Another version makes the task that runs for this task obsolete: it ends, and a new one starts. */
  readonly version: string
  /**
   * Uid of the pod whose memory the task works on: one such task at a time. Absent: it touches the memory of no pod, or may do so
   * beside others.
   */
  readonly memoryOf?: string
}

export type Task =
  /** A primary: the agent detects its end at once, and prepares the redirect to its heir. */
  | (Common & {
      readonly type: 'watchPrimary'
      readonly pod: PodView
      readonly lease: SlotLease
      /** Address to which connections go at its death; undefined: no redirect. */
      readonly way: string | undefined
    })
  /** A primary whose memory holders keep: the agent saves it again and again. */
  | (Common & {
      readonly type: 'checkpoint'
      readonly pod: PodView
      readonly lease: SlotLease
      readonly policy: SlotPolicy
    })
  /** A primary that is to be replaced: the agent stops it and saves its last generation. */
  | (Common & {
      readonly type: 'handOver'
      readonly pod: PodView
      readonly lease: SlotLease
      readonly policy: SlotPolicy
    })
  /** A slot whose generations this node keeps: the agent fetches them from its source. */
  | (Common & {
      readonly type: 'replicate'
      readonly lease: SlotLease
      readonly policy: SlotPolicy
      readonly source: Peer
      /** Other nodes that report generations of the slot, the newest first: the only origin if the source is gone. */
      readonly others: readonly Elsewhere[]
      /** A generation that the source says it cannot give, and another node can. */
      readonly missed: Elsewhere | undefined
    })
  /**
   * An understudy that the slot's Lease names, but whose containers do not run yet: its memory is fetched meanwhile.
   */
  | (Common & { readonly type: 'fetch'; readonly lease: SlotLease; readonly others: readonly Elsewhere[] })
  /** A slot that begins with the memory of another slot: this node copies its generation of that one. */
  | (Common & { readonly type: 'copyMemory'; readonly lease: SlotLease; readonly from: CloneOf })
  /** An understudy in which the agent keeps the memory of a slot frozen. */
  | (Common & { readonly type: 'freeze'; readonly pod: PodView; readonly lease: SlotLease })
  /** Memory of a kind that this node has never restored: the agent restores it once without running it. */
  | (Common & { readonly type: 'verifyRestore'; readonly pod: PodView; readonly lease: SlotLease })
  /** An understudy that no Lease names and in which no app may run: the agent ends any app in it. */
  | (Common & {
      readonly type: 'discard'
      readonly pod: PodView
      /** Ends a frozen clone, too. Otherwise a frozen clone stays, as it may be of use again. */
      readonly frozenToo: boolean
      readonly lease?: undefined
    })
  /** An understudy that the slot's Lease names: the agent puts it on stage. */
  | (Common & {
      readonly type: 'promote'
      readonly pod: PodView
      readonly lease: SlotLease
    })
  /** A cold backup at its gate: the operator wants this agent to open the gate. */
  | (Common & { readonly type: 'wake'; readonly pod: PodView; readonly lease?: undefined })
  /** A cold backup at its gate: the agent notices clients that try to open it without the right to. */
  | (Common & { readonly type: 'watchGate'; readonly pod: PodView; readonly lease?: undefined })
  /** A primary that has died here: the agent redirects connections, and ends all that still runs of it. */
  | (Common & {
      readonly type: 'redirect'
      readonly pod: PodView
      readonly lease: SlotLease
      /** Address to which connections go. */
      readonly to: string
      /** No other pod holds its slot yet. */
      readonly isAwaited: boolean
    })
  /** A dead primary whose heir answers its connections: the agent takes it out of its Services. */
  | (Common & { readonly type: 'leaveServices'; readonly pod: PodView; readonly lease?: undefined })
  /**
   * An understudy on stage: the agent runs its template's probes. The Lease is absent if its set no longer keeps memory.
   */
  | (Common & { readonly type: 'probe'; readonly pod: PodView; readonly lease?: SlotLease })
  /**
   * A primary that is being deleted, or whose slot went to another pod: the agent stops it before its successor runs.
   */
  | (Common & {
      readonly type: 'stopPrimary'
      readonly pod: PodView
      readonly lease: SlotLease
      /** How to save it once more first, if its app does not know of its end yet. Absent: it is not saved any more. */
      readonly lastSave?: SlotPolicy
    })
  | FenceTask

/** Tasks that move no memory. They have no Lease, so that their failures are no failures to save or to restore. */
type FenceTask = Common & { readonly lease?: undefined } & (
    | {
        /** A primary with voters: it may serve only while they answer. */
        readonly type: 'guard'
        readonly pod: PodView
        /** Name of the slot with the incarnation. */
        readonly slot: string
        readonly fence: Fence
      }
    | {
        /** A pod that the sentinel guards, although it may run without voters. */
        readonly type: 'unguard'
        readonly pod: PodView
        /** The slot of the pod. Undefined: no memory may run in the pod any more, so the agent ends its processes first. */
        readonly of: Pick<SlotKey, 'namespace' | 'name'> | undefined
        /** Another pod has the slot, and this one never serves again. */
        readonly isLoser?: boolean
      }
    /** Another node whose sentinel votes for a primary here, or is voted on here. */
    | { readonly type: 'addPeer'; readonly peer: PeerNode }
    | { readonly type: 'removePeer'; readonly node: string }
    /** A slot of another node, for which this node is a voter. */
    | { readonly type: 'vote'; readonly vote: Vote }
    | { readonly type: 'unvote'; readonly slot: string }
    /** The agent of the node whose pod gets the slot by a grant if the primary here dies. */
    | { readonly type: 'reachHeir'; readonly to: Peer }
    | {
        /** A primary that has died here, whose Lease has a grant: the agent tells the heir's agent. */
        readonly type: 'sayGo'
        readonly pod: PodView
        readonly heir: GrantRecord['heir']
        /** The agent of the heir's node. */
        readonly to: Peer
        readonly request: GoRequest
      }
    /** Another node has stated that a primary here is silent: a write of this agent tells the operator that it is not. */
    | { readonly type: 'contradict'; readonly pod: PodView; readonly fence: Fence }
  )

/** Another node, as its report says. */
export interface PeerNode extends Heartbeats {
  /** That of the identity of its agent. */
  readonly fingerprint: string
  readonly node: string
  readonly address: string
}

/** Name of the slot with the incarnation; node of the primary, and the run of its sentinel. */
export interface Vote extends Pick<Fence, 'term' | 'timeoutMs'> {
  readonly slot: string
  readonly node: string
  readonly run: string
  /** The operator has revoked the term. */
  readonly isDenied: boolean
}

export type TaskType = Task['type']

export type TaskOf<T extends TaskType> = Extract<Task, { type: T }>
