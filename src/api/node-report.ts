/**
 * NodeReport: capabilities of a node's agent and the generations that it keeps. Cluster-scoped, with the name of the
 * node. Only the node's agent writes it, at most every few seconds, but at once when a slot becomes usable or unusable
 * there.
 */
import type { KubeObject } from '../kube/object.ts'
import type { Resource } from '../kube/resources.ts'
import type { GrantWord } from './grant.ts'
import { prefix } from './labels.ts'
import { type SlotFields, type SlotKey, slotFieldsOf, slotKeyIn } from './slot-key.ts'

export interface NodeCheck {
  /** `criu`, `canary`, `sentinel`, ... */
  readonly name: string
  readonly ok: boolean
  /** The finding. */
  readonly message: string
  /** How to make the check pass; only if it failed. */
  readonly cure?: string
}

/**
 * Annotation of a report, set when the installation is removed: the node's agent ends its work and removes everything
 * that agents have put on the node. Any value; if it is removed again, the agent restarts its work.
 */
export const retireRequested = `${prefix}retire-requested`

/**
 * Annotation of a report: how often the API server has stated that the primaries of the node are silent, see
 * `apiServerVoter`. Only the operator writes it, with the version of the report as a precondition.
 */
export const silencesAnnotation = `${prefix}silences`

/** Reason in a report: memory of this kind has not been restored on this node yet. */
export const unprovenReason = 'Unproven'

/** Why a copy is not usable on a node: its agent cannot read whether and how the set keeps memory. */
export const policyUnknownReason = 'PolicyUnknown'

/** Reason in a report without a copy: the agent has not yet read this slot from the node's disk. */
export const diskUnreadReason = 'DiskUnread'

/**
 * Why checkpoints are further apart than the set asks for. `FreezeBudget`: they would stop the primary for more than
 * `maxFreezePercent` of its time. `Busy`: its node would do nothing but save. `HoldersBehind`: no holder has fetched
 * the newest generation in time.
 */
export type PaceReason = (typeof paceReasons)[number]

export const paceReasons = ['FreezeBudget', 'Busy', 'HoldersBehind'] as const

/** The state of one slot on this node. */
export interface SlotReport extends SlotKey {
  /** `source`: the primary runs here. `holder`: this node keeps its generations. */
  readonly role: 'source' | 'holder'
  /** The newest complete generation. 0: none yet. */
  readonly generation: number
  /** Epoch in which that generation was saved; absent: none yet, or an agent of an earlier version. */
  readonly epoch?: number
  /** That generation has a signature of the node that saved it. */
  readonly signed?: boolean
  /** RFC 3339, by the source's clock: the time at which the dump froze this memory. */
  readonly takenAt?: string
  readonly bytes?: number
  /** Seconds for which the newest generation stopped the primary. */
  readonly frozenSeconds?: number
  /** Seconds from the stop of the primary until the generation was complete here. */
  readonly pipelineSeconds?: number
  /**
   * How a successor on this node could get it; for a source, only while its primary is not on stage. `Cold`: no
   * understudy that fits is free here, so one must first be woken or created, here or where it can fetch the copy.
   * Absent: not (yet) usable.
   */
  readonly usable?: 'Frozen' | 'Staged' | 'Cold'
  /** The understudy that has the frozen clone. */
  readonly understudyUid?: string
  /** The copy on the node's disk. */
  readonly onDisk?: { readonly generation: number; readonly takenAt: string }
  /** Why the disk takes no newer generation of this slot, although it takes those of other slots. */
  readonly diskReason?: string
  /** Effective interval, seconds; source only. */
  readonly intervalSeconds?: number
  /** Source: why the interval is longer than the set asks for. */
  readonly intervalReason?: PaceReason
  /**
   * It is the last generation of its primary, which is stopped until its successor runs. Source: no later generation
   * exists. Holder: the understudy could take over with it at once.
   */
  readonly final?: boolean
  /**
   * Holder, while the Lease names a pod on this node as successor of a handover: the generation of the Lease's epoch with which that pod
   * could take over at once. Absent: with none, or an agent of an earlier version.
   */
  readonly successorGeneration?: number
  /** Source: for how many seconds its primary stays stopped, from the moment at which `generation` is reported. */
  readonly standsForSeconds?: number
  /** Source: for how many seconds it had been stopped by then; absent: not known, as when an agent of before has stopped it. */
  readonly stoodForSeconds?: number
  /**
   * Source: the handover for which it is stopped, as in `handovers` of its Lease; absent: an agent of an earlier
   * version.
   */
  readonly standsForHandover?: number
  /** Source: a handover stopped its primary and failed, so no new one may start for now. */
  readonly handoverPaused?: boolean
  /** Source: the primary's annotation `checkpoint-requested` that this generation answers. */
  readonly answeredRequest?: string
  /** Source: the latest voters that the sentinel of the primary has acknowledged, see `Fence`. */
  readonly acknowledged?: { readonly term: number; readonly version: number }
  /** Source: the sentinel has stopped the primary, because too few of its voters answer. */
  readonly fenced?: boolean
  /**
   * Source: uid of the primary, if by the API server's word its pod is gone or has finished, and the agent has ended what
   * it watched of it; or if the pod does not belong to its set any more.
   */
  readonly ended?: string
  /** The latest term of the slot in which this node has stated that the primary is silent. */
  readonly silentTerm?: number
  /**
   * The term of the slot in which this node will state that soon, unless it hears a heartbeat. Absent: it hears the primary, has
   * stated its silence, or has an agent of an earlier version.
   */
  readonly suspectTerm?: number
  /** Nodes of the primary and of the heir: see `Grant`. Absent: this agent says nothing, and may have used any. */
  readonly grant?: GrantWord
  /** Why there is no newer generation, or why this one is not usable. */
  readonly reason?: string
  readonly message?: string
}

/** How the sentinel of a node hears the sentinels of others. */
export interface Heartbeats {
  /** UDP port; the host is that of the agent's address. */
  readonly port: number
  /** Distinguishes this sentinel from one that made other promises, 16 hex digits. */
  readonly run: string
  /** Public key of the agent's identity, hex: two nodes derive the key of their heartbeats from each other's. */
  readonly key: string
}

/** Returns the host of an agent's address, without the brackets of IPv6. */
export const hostOf = ({ address }: Pick<NodeReportStatus, 'address'>): string =>
  address.replace(/:\d+$/, '').replace(/^\[(.*)\]$/, '$1')

/** Bytes that generations use, and their budget. */
export interface Budget {
  readonly bytes: number
  readonly budget: number
  /** Why nothing is written there although it should be. */
  readonly reason?: string
  readonly message?: string
}

export interface NodeReportStatus {
  /** Version of the agent. */
  readonly version: string
  /** host:port of the agent for its peers. */
  readonly address: string
  /** SHA-256 of the public key (SubjectPublicKeyInfo) with which the agent authenticates itself, hex. */
  readonly fingerprint: string
  /** The agent signs generations with that key; absent: an agent of an earlier version. */
  readonly signs?: boolean
  /** The agent can copy memory of one slot for another; absent: an agent of an earlier version. */
  readonly clones?: boolean
  /** Absent: the sentinel of this node neither votes nor is voted on. */
  readonly heartbeats?: Heartbeats
  /**
   * Public key (X25519, base64url) for which the operator encrypts the node's half of the keys for generations on its disk, see
   * `sealDiskHalf`. The node makes another one at each boot. Absent: the node uses no disk.
   */
  readonly diskKey?: string
  readonly kernel: string
  readonly criu: string
  readonly architecture: string
  /** CPU features that programs find on every processor of the node; absent: an agent of an earlier version. */
  readonly cpuFeatures?: readonly string[]
  readonly checks: readonly NodeCheck[]
  /** All checks succeed: memory can be saved and restored here. */
  readonly ready: boolean
  readonly slots: readonly SlotReport[]
  /** The agents have removed everything of theirs from the node, as `retire-requested` asks. */
  readonly retired?: boolean
  /**
   * If `slots` is as long as `slotCount` says, it lists all copies on this node. An agent that has just started does not know them yet:
   * then `slots` is the previous agent's last list, and a missing slot is not known to be gone. The same applies if
   * this is absent, in reports of an earlier version.
   */
  readonly slotsKnown?: boolean
  /** The tmpfs of generations. */
  readonly memory?: Budget
  /** The disk of generations; absent: the agent uses none. */
  readonly disk?: Budget
  /**
   * Length of `slots`, and the number of slots with a copy here for which it has no room: then a slot missing there is not
   * known to be gone.
   */
  readonly slotCount?: number
  /** RFC 3339. */
  readonly updatedAt: string
}

/** Limits of a report. The writer cuts at these, because the API server would reject the whole report. */
export const reportLimits = Object.freeze({
  /** Far more than a node can run. Beyond it, slots without a copy are left out, and then only `slotCount` grows. */
  slots: 800,
  checks: 64,
  /** Linux has room for about 700 on x86, and fewer elsewhere. */
  cpuFeatures: 1024,
  /** Characters of one name. */
  cpuFeature: 63,
  /** Characters of a message about a slot: a report with 800 of them can still be stored. */
  message: 1024,
} as const)

export interface NodeReport extends KubeObject {
  readonly status?: NodeReportStatus
}

/** An entry as the API server has it: agents of the version before name the slot by other fields. */
export type WrittenSlotReport = Omit<SlotReport, keyof SlotKey> &
  Pick<SlotKey, 'namespace'> &
  Partial<Omit<SlotFields, 'namespace'>>

/** Returns entries that agents and operators of the version before read, too; a later version omits this. */
export const writtenSlots = (slots: readonly SlotReport[]): readonly WrittenSlotReport[] =>
  slots.map(slot => ({ ...slot, ...slotFieldsOf(slot) }))

/**
 * Returns a report in the form that this version reads, without `managedFields`. Every reader of the API server's reports
 * needs it: agents of the version before name slots by other fields. An entry that names none, or two, is left out; then
 * `slotCount` says that slots are missing. A status without a list of slots says nothing: it is left out.
 */
export function parseReport(report: NodeReport): NodeReport {
  const { managedFields: _, ...metadata } = report.metadata
  const { status, ...rest } = report
  if (!Array.isArray(status?.slots)) return { ...rest, metadata }
  const slots = status.slots.flatMap((written: WrittenSlotReport): readonly SlotReport[] => {
    const { set: _set, slot: _slot, life: _life, ...said } = written
    const key = slotKeyIn(written)
    return key === undefined ? [] : [{ ...said, ...key }]
  })
  return { ...rest, metadata, status: { ...status, slots } }
}

export const nodeReports: Resource<NodeReport> = Object.freeze({
  group: 'backup.example.com',
  version: 'v1alpha1',
  plural: 'nodereports',
  kind: 'NodeReport',
  namespaced: false,
})
