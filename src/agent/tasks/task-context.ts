/**
 * The capabilities of tasks, by the lifetime of what they give access to. A task takes those that it uses, with `Pick`: a
 * test of it makes only these.
 */

import type { SlotKey } from '../../api/slot-key.ts'
import type { SlotLease } from '../../api/slot-lease.ts'
import type { SlotPolicy } from '../../api/slot-policy.ts'
import type { Manifest } from '../../checkpoint/manifest.ts'
import type { GenerationStore, Stored } from '../../checkpoint/store.ts'
import type { Clock } from '../../kube/clock.ts'
import type { Log } from '../../kube/log.ts'
import type { Probe } from '../../probe/probe.ts'
import type { TraceSink } from '../../traces/span.ts'
import type { Gates } from '../container/gates.ts'
import type { CommandRunner } from '../container/hold-command.ts'
import type { LocatedPod, MemoryDriver } from '../criu/memory-driver.ts'
import type { Elsewhere } from '../observe/elsewhere.ts'
import type { Inquiry } from '../observe/inquiry.ts'
import type { PodView } from '../observe/snapshot.ts'
import type { Obstacle } from '../preflight/obstacles/obstacle.ts'
import type { PodCondition, WrittenPod } from '../report/conditions.ts'
import type { AgentMetrics } from '../report/metrics.ts'
import type { Precedence } from '../report/precedence.ts'
import type { SentinelClient } from '../sentinel/client.ts'
import type { Deaths } from '../state/deaths.ts'
import type { Fencing } from '../state/fencing.ts'
import type { GrantFiles, Grants } from '../state/grants.ts'
import type { HandoverPauses } from '../state/handover-pauses.ts'
import type { LazyPages } from '../state/lazy-pages.ts'
import type { Paces } from '../state/paces.ts'
import type { Progress } from '../state/progress.ts'
import type { RestorableKinds } from '../state/restorable-kinds.ts'
import type { Strangers } from '../state/strangers.ts'
import type { Understudies } from '../state/understudies.ts'
import type { PeerClient } from '../transfer/client.ts'
import type { HeartbeatKey } from '../transfer/heartbeat-key.ts'
import type { KeyedSignal } from '../transfer/keyed-signal.ts'
import type { Turns } from '../transfer/turns.ts'
import type { ApiVoter } from './api-voter.ts'
import type { InheritedConnections } from './inherited-connections.ts'
import type { MeasureVolumes } from './volumes-limit.ts'
import type { DraftBytes } from './watched-draft.ts'

/** The sentinel's commands that tasks give. */
export type TaskSentinel = Pick<
  SentinelClient,
  | 'watch'
  | 'unwatch'
  | 'prepareRedirect'
  | 'redirect'
  | 'undoRedirect'
  | 'keepOut'
  | 'treeKill'
  | 'watches'
  | 'stop'
  | 'keep'
  | 'isDone'
  | 'continue'
  | 'guard'
  | 'unguard'
  | 'answered'
  | 'addPeer'
  | 'removePeer'
  | 'vote'
  | 'unvote'
>

/** Capabilities that live as long as the agent. Only these differ between a node and a model of one. */
export interface NodeCapabilities {
  readonly node: string
  readonly driver: MemoryDriver
  readonly sentinel: TaskSentinel
  readonly inquiry: Inquiry
  /** Questions to the API server that may wait, so they leave the urgent connections alone. */
  readonly unhurried: Pick<Inquiry, 'isThere'>
  readonly store: GenerationStore
  readonly peers: Pick<PeerClient, 'pull'>
  /** Turns of the node's checkpoints. */
  readonly saves: Turns
  /** Tells another agent to use a grant. */
  readonly go: PeerClient['go']
  /** Keeps a connection to another agent. */
  readonly reach: PeerClient['reach']
  readonly grantFiles: GrantFiles
  /** Returns the key of heartbeats that this node shares with a peer; undefined: the peer's key is none. */
  readonly heartbeatKey: HeartbeatKey['with']
  /** Signs the manifest of a generation that this node has saved. */
  readonly sign?: (manifest: Manifest) => Manifest
  /** Connections that reach a successor through a dead primary. */
  readonly inheritedConnections: InheritedConnections
  readonly gates: Gates
  readonly restorableKinds: RestorableKinds
  readonly probe?: Probe
  /** Measures layers, emptyDirs and /dev/shm of a pod together, bytes; stops at a limit. */
  readonly measureVolumes?: MeasureVolumes
  /** Measures a draft. Default: by its files. */
  readonly draftBytes?: (directory: string) => Promise<DraftBytes>
  /** Measures the memory of a pod's processes, bytes: a first dump reserves so much room. */
  readonly measureMemory?: (pod: LocatedPod, signal: AbortSignal) => Promise<number>
  /** Loads generations of a slot that only the disk has, one by one. */
  readonly fromDisk?: (lease: SlotLease, signal: AbortSignal) => AsyncIterable<Stored>
  /** Runs a command of a template in a container on stage, with the container's rights. */
  readonly runCommand: CommandRunner
  /** Finds the things in a pod that cannot be saved. */
  readonly obstacles: (pod: LocatedPod, signal: AbortSignal) => Promise<readonly Obstacle[]>
  /** Emits an event for a person to read. */
  readonly event: (
    pod: PodView,
    type: 'Normal' | 'Warning',
    reason: string,
    action: string,
    note: string,
  ) => void
  /** Makes other writes to the API server wait for this work; absent: none waits. */
  readonly during?: Precedence['during']
  /** Takes the spans of traces; absent: none are sent. */
  readonly trace?: TraceSink
  readonly metrics: AgentMetrics
  readonly clock: Clock
  readonly log: Log
}

/** The agent's memory of slots. */
interface SlotCapabilities {
  readonly progress: Progress
  readonly handoverPauses: Pick<HandoverPauses, 'begin'>
  readonly paces: Pick<Paces, 'of'>
  /** Tells the name of a slot when this node has another generation of it. */
  readonly generations: KeyedSignal
  /** The present policy of a slot; undefined: it is unknown, or the slot is gone. */
  readonly policyOf: (slot: SlotKey) => SlotPolicy | undefined
  /** The newest generations that other nodes named by the slot's Lease report now, the newest first. */
  readonly elsewhere: (lease: SlotLease) => readonly Elsewhere[]
  /** Whether another of the slot's holders reports this generation, or a newer one. */
  readonly isKeptElsewhere: (lease: SlotLease, generation: number) => boolean
  /** The generation with which the successor of a handover could continue, by the report of its node; undefined: none yet. */
  readonly successorGeneration: (lease: SlotLease) => number | undefined
  /** The newest generation on a node where an understudy could take the slot at once, by the report of that node; undefined: none. */
  readonly standbyGeneration: (lease: SlotLease) => number | undefined
  /** Announces a new generation on this node, also to peers that wait for it. */
  readonly announce: (slot: SlotKey) => void
}

/** The agent's memory of the pods of its node. */
export interface PodCapabilities {
  readonly understudies: Understudies
  /** Memory in transit into apps that already run. */
  readonly lazyPages: LazyPages
  readonly deaths: Deaths
  readonly fencing: Fencing
  readonly grants: Grants
  /** Redirects of other slots that may lead to pods of this node. */
  readonly strangers: Strangers
  /** Shows the operator by a write that this agent lives, for a primary with this time-out. */
  readonly showLife: ApiVoter['alone']
  /** Writes a condition of a pod; undefined: the pod is gone. */
  readonly patch: (
    pod: PodView,
    condition: PodCondition,
    signal?: AbortSignal,
  ) => Promise<WrittenPod | undefined>
  /** The pod as it is now. */
  readonly podOf: (uid: string) => PodView | undefined
  /** Name of the slot that this pod holds by the present Lease. */
  readonly slotHeldBy: (uid: string) => string | undefined
  /** Whether this primary is to be stopped at once. */
  readonly isToEnd: (uid: string) => boolean
  /** How many pods of this node are being deleted, whose apps do not know that yet. */
  readonly heldPods: () => number
  /** Where connections to this primary lead once it is dead; undefined: to itself, or it holds no slot. */
  readonly wayOf: (uid: string) => string | undefined
  /** Whether another pod could continue with this pod's memory; see `Deaths`. */
  readonly matters: (pod: PodView) => boolean
  /**
   * Tells the uid of a pod when something changes on which its checkpoints depend: a request, its readiness, its policy.
   */
  readonly requests: KeyedSignal
  /** Keeps probes of this pod from counting until the returned function is called. */
  readonly suspendProbes: (uid: string) => () => void
  readonly onProber: (uid: string, suspend: (() => () => void) | undefined) => void
}

export interface TaskContext extends NodeCapabilities, SlotCapabilities, PodCapabilities {}
