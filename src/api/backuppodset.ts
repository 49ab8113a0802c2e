/**
 * The BackupPodSet resource in its serialized form. The schema in src/api/schema gets its types, values and defaults from
 * here, so that the two cannot differ.
 *
 * Long because it is a list: every field of the object.
 */
import type { V1PodTemplateSpec } from '@kubernetes/client-node'
import { type Condition, conditionLimits } from '../kube/conditions.ts'
import type { KubeObject, Wire } from '../kube/object.ts'
import type { Resource } from '../kube/resources.ts'
import type { PodKind } from './labels.ts'
import {
  type LastFailover,
  type Protection,
  type RetainedSlots,
  type SlotStatus,
  slotLimits,
} from './slot-status.ts'

/** How to choose a pod among existing pods. */
export const strategies = ['random', 'oldest', 'newest', 'spread', 'annotated'] as const
export type Strategy = (typeof strategies)[number]

/** How to place a new pod. It has no age or annotation to choose by. */
export const placements = ['random', 'spread'] as const
export type Placement = (typeof placements)[number]

export const placementKeys = [
  'init',
  'unallocatedToColdbackup',
  'unallocatedToHotbackup',
  'unallocatedToReplicas',
] as const
export type PlacementKey = (typeof placementKeys)[number]

export const choiceKeys = [
  'coldbackupToHotbackup',
  'coldbackupToReplicas',
  'hotbackupToReplicas',
  'replicasToUnallocated',
  'hotbackupToUnallocated',
  'coldbackupToUnallocated',
] as const
export type ChoiceKey = (typeof choiceKeys)[number]

export const strategyKeys = [...placementKeys, ...choiceKeys] as const
export type StrategyKey = (typeof strategyKeys)[number]

export const gatePositions = ['First', 'Last'] as const
export type GatePosition = (typeof gatePositions)[number]

export const antiAffinities = ['Preferred', 'Required', 'None'] as const
export type AntiAffinity = (typeof antiAffinities)[number]

export const updateStrategies = ['RollingUpdate', 'OnDelete'] as const
export type UpdateStrategy = (typeof updateStrategies)[number]

export const crashLoopPolicies = ['Replace', 'Ignore'] as const
export type CrashLoopPolicy = (typeof crashLoopPolicies)[number]

/** Whether a primary whose node is cut off stops by itself, so that another pod can take over at once. */
export const fencings = ['Freeze', 'None'] as const
export type Fencing = (typeof fencings)[number]

/**
 * Whether an heir takes its slot without the operator, if the agent of the dead primary tells it to. `Announced`: only after its agent
 * has told the API server.
 */
export const grantees = ['None', 'Announced', 'Heir'] as const
export type Grantee = (typeof grantees)[number]

/** How a hot backup keeps a primary's memory: restored and frozen in the pod, staged on its node, or not at all. */
export const hotBackupModes = ['Frozen', 'Staged', 'Warm'] as const
export const diskUses = ['Encrypted', 'None'] as const

/**
 * Nodes that may keep memory in addition to the nodes of the set's own pods: those where the template may run, or all.
 */
export const holderChoices = ['Matching', 'Any'] as const
/** How primaries leave a node that is drained: with their memory, or as Kubernetes evicts them. */
export const drainModes = ['Move', 'Evict'] as const
export type DrainMode = (typeof drainModes)[number]

export type HotBackupMode = (typeof hotBackupModes)[number]

/** Source of saved states: the memory of processes, or state that the app itself returns. */
export const checkpointSources = ['criu', 'http'] as const
export type CheckpointSource = (typeof checkpointSources)[number]

export const pushMethods = ['POST', 'PUT', 'PATCH'] as const
export type PushMethod = (typeof pushMethods)[number]

export const protocols = ['TCP', 'UDP'] as const
export type Protocol = (typeof protocols)[number]

/** As in Services of Kubernetes. */
export const serviceTypes = ['ClusterIP', 'NodePort', 'LoadBalancer'] as const
export type ServiceType = (typeof serviceTypes)[number]

export type PodTemplate = Wire<V1PodTemplateSpec>

export interface StrategySpec
  extends Readonly<Partial<Record<PlacementKey, Placement> & Record<ChoiceKey, Strategy>>> {}

export interface UpdateStrategySpec {
  readonly type?: UpdateStrategy
  /** The roll may lose memory that cannot be restored in any pod of the new template. */
  readonly allowStateLoss?: boolean
}

export interface LivenessSpec {
  /** Milliseconds between two probes. */
  readonly periodMilliseconds?: number
  /** Consecutive failures that count as a death. */
  readonly failureThreshold?: number
}

export interface FailoverSpec {
  /** 0: never. */
  readonly unreadySeconds?: number
  readonly crashLoop?: CrashLoopPolicy
  /** A duration such as `3s`: for so long a node with primaries may be silent. */
  readonly nodeTimeout?: string
  readonly fencing?: Fencing
  readonly grant?: Grantee
  /** Makes the node's agent run the template's livenessProbe. */
  readonly liveness?: LivenessSpec
}

export interface HttpHeader {
  readonly name: string
  readonly value: string
}

/** The app's endpoint that returns its state to a GET and takes it back. */
export interface HttpSourceSpec {
  readonly port: number
  readonly path?: string
  /** Sent with both requests. */
  readonly headers?: readonly HttpHeader[]
  /** A size such as `16Mi`. */
  readonly maxSize?: string
  /** Timeout of one request. */
  readonly timeoutSeconds?: number
  /** Time for a successor to take the state, from the moment at which its containers may start. */
  readonly restoreSeconds?: number
  readonly push?: {
    readonly path?: string
    readonly method?: PushMethod
    readonly headers?: readonly HttpHeader[]
    /** Also push each pulled state to hot backups. */
    readonly everyInterval?: boolean
  }
}

/** If present, the set asks to keep its primaries' memory. */
export interface CheckpointSpec {
  readonly source?: CheckpointSource
  readonly http?: HttpSourceSpec
  /** A duration such as `10s` or `500ms`. */
  readonly interval?: string
  /** Maximum share of time for which checkpoints may stop a primary; the interval grows to stay below it. */
  readonly maxFreezePercent?: number
  /** Names of containers; absent: all. */
  readonly containers?: readonly string[]
  readonly volumes?: { readonly maxSize?: string }
  /** Number of nodes that keep a slot's generations. */
  readonly copies?: number
  /** Which nodes may be holders. */
  readonly holders?: HolderChoice
  /** Number of generations that each of these nodes keeps. */
  readonly keep?: number
  /**
   * A slot without primary begins a new incarnation if its memory is kept but could not be restored for this time. 0: never.
   */
  readonly giveUpAfterSeconds?: number
  /**
   * A duration such as `10m`: how long to keep the memory of a slot that a smaller `replicas` removes. `0s`: not at
   * all.
   */
  readonly retain?: string
  /** Whether these nodes may also write generations to their disks, encrypted. */
  readonly disk?: DiskUse
  readonly drain?: DrainMode
}

export type DiskUse = (typeof diskUses)[number]

export type HolderChoice = (typeof holderChoices)[number]

export interface HotBackupSpec {
  readonly mode?: HotBackupMode
}

export interface ServicePortSpec {
  readonly name?: string
  readonly port: number
  /** Default: equal to `port`. Always a number: ports of an EndpointSlice cannot refer to ports by name. */
  readonly targetPort?: number
  readonly protocol?: Protocol
}

export interface ServiceSpec {
  /** Name of the Service in front of all primaries; absent: there is none. */
  readonly name?: string
  readonly ports: readonly ServicePortSpec[]
  /** One Service for each slot, `<set>-<slot>`, whose address survives failovers. */
  readonly perSlot?: boolean
  /** Type of each of these Services. */
  readonly type?: ServiceType
}

export interface CloneFrom {
  /** A primary of a set in the same namespace, or the pod of a MigratingPod. */
  readonly pod: string
}

export interface BackupPodSetSpec {
  readonly replicas?: number
  readonly hotBackups?: number
  readonly coldBackups?: number
  readonly strategy?: StrategySpec
  readonly schedulerName?: string
  /** Seconds for the whole wake-up of one cold backup. */
  readonly wakeupTimeout?: number
  readonly gatePosition?: GatePosition
  readonly paused?: boolean
  /** True: its pods end, and the memory of its slots is kept until this is false. */
  readonly suspend?: boolean
  /** Each new slot begins with a copy of the memory of this pod. Absent: it begins with an empty state. */
  readonly cloneFrom?: CloneFrom
  readonly antiAffinity?: AntiAffinity
  readonly updateStrategy?: UpdateStrategySpec
  readonly failover?: FailoverSpec
  readonly checkpoint?: CheckpointSpec
  readonly hotBackup?: HotBackupSpec
  readonly service?: ServiceSpec
  readonly template: PodTemplate
}

/** Defaults that the API server sets. They also apply to a set that was stored without them. */
export const defaults = Object.freeze({
  replicas: 1,
  hotBackups: 0,
  coldBackups: 0,
  strategy: 'random',
  schedulerName: 'default-scheduler',
  wakeupTimeout: 5,
  gatePosition: 'First',
  paused: false,
  suspend: false,
  antiAffinity: 'Preferred',
  updateStrategy: 'RollingUpdate',
  /** Kept memory may not fit another template, so an edit of the template alone replaces no pod. */
  updateStrategyWithMemory: 'OnDelete',
  allowStateLoss: false,
  unreadySeconds: 30,
  crashLoop: 'Replace',
  nodeTimeout: '3s',
  fencing: 'Freeze',
  grant: 'None',
  checkpoint: Object.freeze({
    interval: '10s',
    maxFreezePercent: 2,
    copies: 2,
    holders: 'Matching',
    keep: 2,
    giveUpAfterSeconds: 0,
    retain: '10m',
    disk: 'Encrypted',
    drain: 'Move',
    volumes: Object.freeze({ maxSize: '1Gi' }),
    source: 'criu',
  }),
  httpSource: Object.freeze({
    path: '/state',
    maxSize: '16Mi',
    timeoutSeconds: 5,
    restoreSeconds: 60,
    method: 'POST',
    everyInterval: false,
  }),
  /** For a set that asks for memory without a mode. */
  hotBackupMode: 'Frozen',
  liveness: Object.freeze({ periodMilliseconds: 1_000, failureThreshold: 3 }),
  protocol: 'TCP',
  serviceType: 'ClusterIP',
  perSlot: false,
} as const)

/** Bounds, inclusive. */
export const limits = Object.freeze({
  /** Characters: pod names append `-` and 12 hex digits, and a label value has at most 63. */
  name: 50,
  /** Pods of one kind. */
  count: { min: 0, max: 10_000 },
  /** Seconds. */
  wakeupTimeout: { min: 1, max: 300 },
  /** Seconds. */
  unreadySeconds: { min: 0, max: 86_400 },
  /** Milliseconds. */
  nodeTimeout: { min: 1_000, max: 60_000 },
  /** Characters. */
  schedulerName: { min: 1, max: 253 },
  podName: { min: 1, max: 253 },
  /** Milliseconds. */
  interval: { min: 200, max: 3_600_000 },
  /** Percent. */
  maxFreezePercent: { min: 1, max: 50 },
  /** Nodes. */
  copies: { min: 1, max: 5 },
  /** Generations. */
  keep: { min: 1, max: 10 },
  /** Seconds: thirty days at most. */
  giveUpAfterSeconds: { min: 0, max: 2_592_000 },
  /** Milliseconds: thirty days at most. */
  retain: { min: 0, max: 2_592_000_000 },
  /** Milliseconds. */
  livenessPeriod: { min: 50, max: 60_000 },
  failureThreshold: { min: 1, max: 100 },
  port: { min: 1, max: 65_535 },
  /** Bytes of one pulled state. */
  stateBytes: { min: 1, max: 256 * 2 ** 20 },
  /** Seconds. */
  pullTimeout: { min: 1, max: 300 },
  /** Seconds. */
  restoreSeconds: { min: 1, max: 3_600 },
  /** Headers of a pull or push. */
  headers: 16,
  /** Failovers listed in the status; the failover history has more. */
  failovers: 10,
  /** Characters of a condition: its reason and its message. */
  conditionReason: conditionLimits.reason,
  conditionMessage: conditionLimits.message,
  ...slotLimits,
} as const)

export interface LastTransition {
  readonly pod: string
  readonly from: PodKind
  readonly to: PodKind
  /** RFC 3339. */
  readonly at: string
}

/** The columns of `kubectl get bps`. */
export interface Summary {
  readonly replicas: string
  readonly hotbackups: string
  readonly coldbackups: string
  /** The following fields count only pods that are ready for their job. Earlier versions did not write them. */
  readonly ready?: string
  /** Ready hot backups and cold backups at their gate. */
  readonly readyBackups?: string
  /** With checkpoint: that of the slot which would lose most. */
  readonly protection?: Protection
}

/** The end of a primary with success. */
export interface Completion {
  readonly pod: string
  /** RFC 3339. */
  readonly at: string
}

export interface BackupPodSetStatus extends RetainedSlots {
  readonly observedGeneration?: number
  readonly replicas?: number
  readonly hotbackups?: number
  readonly coldbackups?: number
  readonly readyReplicas?: number
  readonly readyHotbackups?: number
  readonly gatedColdbackups?: number
  readonly updatedPods?: number
  readonly primaryPodNames?: readonly string[]
  readonly hotbackupPodNames?: readonly string[]
  readonly coldbackupPodNames?: readonly string[]
  readonly summary?: Summary
  readonly selector?: string
  readonly slots?: readonly SlotStatus[]
  readonly lastTransition?: LastTransition
  /** Only with restartPolicy OnFailure: the app has ended with success, and nothing continues. */
  readonly completion?: Completion
  readonly lastFailover?: LastFailover
  /** Newest first. */
  readonly failovers?: readonly LastFailover[]
  readonly conditions?: readonly Condition[]
}

export interface BackupPodSet extends KubeObject {
  readonly spec: BackupPodSetSpec
  readonly status?: BackupPodSetStatus
}

export const backupPodSets: Resource<BackupPodSet> = Object.freeze({
  group: 'backup.example.com',
  version: 'v1alpha1',
  plural: 'backuppodsets',
  kind: 'BackupPodSet',
  namespaced: true,
})
