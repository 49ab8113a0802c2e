/**
 * NodeReport: what the agent of one node can do and what it keeps. Cluster-scoped, named as the node; written by that
 * node's agent alone, at most every few seconds and at once when a slot becomes usable or unusable there.
 */
import type { KubeObject } from '../kube/object.ts'
import type { Resource } from '../kube/resources.ts'
import { prefix } from './labels.ts'
import type { SlotKey } from './slot-lease.ts'

export interface NodeCheck {
  /** `criu`, `canary`, `sentinel`, ... */
  readonly name: string
  readonly ok: boolean
  /** What was found. */
  readonly message: string
  /** What to change; only of a check that failed. */
  readonly cure?: string
}

/**
 * Annotation of a report, written by who takes the installation away: the agent of the node ends its work and removes
 * everything that agents have put there. Any value; taken off again, the agent begins anew.
 */
export const retireRequested = `${prefix}retire-requested`

/** Reason of a report: what is kept of this kind is being brought back on this node for the first time. */
export const unprovenReason = 'Unproven'

/** Why what a node keeps of a slot is not usable there: its agent cannot read whether and how the set keeps memory. */
export const specUnreadableReason = 'SpecUnreadable'

/** Reason of a report of nothing: the disk of the node has not been asked for this slot yet. */
export const diskUnreadReason = 'DiskUnread'

/**
 * Why checkpoints are further apart than the set asks for. `FreezeBudget`: the primary would stand still for more than
 * `maxFreezePercent` of its time. `Busy`: its node would do nothing but save. `HoldersBehind`: no holder has fetched the
 * newest one in time.
 */
export type PaceReason = (typeof paceReasons)[number]

export const paceReasons = ['FreezeBudget', 'Busy', 'HoldersBehind'] as const

/** One slot on this node, as far as the agent keeps something of it. */
export interface SlotReport extends SlotKey {
  /** `source`: the primary runs here. `holder`: its generations are kept here. */
  readonly role: 'source' | 'holder'
  /** The newest complete generation. 0: none yet. */
  readonly generation: number
  /** Epoch in which that was saved; absent: none yet, or an agent of an earlier version. */
  readonly epoch?: number
  /** That bears the signature of the node that saved it. */
  readonly signed?: boolean
  /** RFC 3339, by the source's clock: the instant whose memory it is. */
  readonly takenAt?: string
  readonly bytes?: number
  /** Seconds for which the primary stood still for the newest generation. */
  readonly frozenSeconds?: number
  /** Seconds from the stop of the primary until the generation was complete here. */
  readonly pipelineSeconds?: number
  /**
   * How it could go on stage from here; of a source, only while its primary is not on stage. `Cold`: no understudy holds the stage here, so one has to be woken or
   * made first, here or where it can fetch it. Absent: not (yet).
   */
  readonly usable?: 'Frozen' | 'Staged' | 'Cold'
  /** The understudy in which it is frozen. */
  readonly understudyUid?: string
  /** What of it is on the node's disk. */
  readonly onDisk?: { readonly generation: number; readonly takenAt: string }
  /** Effective interval, seconds; source only. */
  readonly intervalSeconds?: number
  /** Source: why that is longer than the interval that the set asks for. */
  readonly intervalReason?: PaceReason
  /**
   * It is the last generation of its primary, which stands still until its successor goes on. Source: nothing came after
   * it. Holder: the understudy could go on with it at once.
   */
  readonly final?: boolean
  /** Source: for so many seconds its primary stands still, counted from the moment at which `generation` is reported. */
  readonly standsForSeconds?: number
  /** Source: the handover for which it stands, as `handovers` of its Lease counts them; absent: an agent of an earlier version. */
  readonly standsForHandover?: number
  /** Source: its primary stood still for a successor in vain, and is not to do that again for now. */
  readonly handoverPaused?: boolean
  /** Source: the annotation `checkpoint-requested` of the primary that this generation answers. */
  readonly answeredRequest?: string
  /** Why there is no newer generation, or why it is not usable. */
  readonly reason?: string
  readonly message?: string
}

/** What generations take up of a budget, bytes. */
export interface Budget {
  readonly bytes: number
  readonly budget: number
  /** Why nothing is written there, though it should be. */
  readonly reason?: string
  readonly message?: string
}

export interface NodeReportStatus {
  /** Version of the agent. */
  readonly version: string
  /** host:port of the agent for its peers. */
  readonly address: string
  /** SHA-256 of the public key (SubjectPublicKeyInfo) the agent proves itself with, hex. */
  readonly fingerprint: string
  /** It signs what it saves with that key; absent: an agent of an earlier version. */
  readonly signs?: boolean
  readonly kernel: string
  readonly criu: string
  readonly architecture: string
  /** Instructions that programs find on every processor of the node; absent: an agent of an earlier version. */
  readonly cpuFeatures?: readonly string[]
  readonly checks: readonly NodeCheck[]
  /** Every check holds: memory can be saved and restored here. */
  readonly ready: boolean
  readonly slots: readonly SlotReport[]
  /** Nothing of the agents is left on the node, as `retire-requested` asks for. */
  readonly retired?: boolean
  /**
   * `slots`, if it is not cut, is all that is kept here. An agent that has only just started does not know that yet: `slots` is then what the
   * agent before it has said last, and no slot that is missing there is known to be gone. Absent: an agent of an earlier
   * version, of which the same is true.
   */
  readonly slotsKnown?: boolean
  /** The tmpfs of generations. */
  readonly memory?: Budget
  /** The disk of generations; absent: none is used. */
  readonly disk?: Budget
  /**
   * Slots of which something is here, also where `slots` had no room for all of them: then a slot that is missing there is not
   * known to be gone.
   */
  readonly slotCount?: number
  /** RFC 3339. */
  readonly updatedAt: string
}

/** Of a report. One that is refused says nothing at all, so its writer cuts at these. */
export const reportLimits = Object.freeze({
  /** Far above what a node can run. Where more is kept, `slotCount` goes on. */
  slots: 800,
  checks: 64,
  /** Linux has room for about 700 on x86, and fewer elsewhere. */
  cpuFeatures: 1024,
  /** Characters of the name of one. */
  cpuFeature: 63,
  /** Characters of a message about a slot: 800 of them and what stands beside them can be stored. */
  message: 1024,
} as const)

export interface NodeReport extends KubeObject {
  readonly status?: NodeReportStatus
}

export const nodeReports: Resource<NodeReport> = Object.freeze({
  group: 'backup.example.com',
  version: 'v1alpha1',
  plural: 'nodereports',
  kind: 'NodeReport',
  namespaced: false,
})
