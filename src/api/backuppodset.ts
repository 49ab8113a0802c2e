/**
 * BackupPodSet as it is on the wire. The schema in crds/schema is typed by what is declared here and takes its values
 * and defaults from here, so that the two cannot differ.
 */
import type { V1PodTemplateSpec } from '@kubernetes/client-node'
import type { KubeObject, Wire } from '../kube/object.ts'
import type { Resource } from '../kube/resources.ts'
import type { PodKind } from './labels.ts'

/** How a pod is chosen among those that are there. */
export const strategies = ['random', 'oldest', 'newest', 'spread', 'annotated'] as const
export type Strategy = (typeof strategies)[number]

/** How a new pod is placed: there is no age to go by. */
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

/** How a hot backup keeps a primary's memory: rebuilt and stopped, on its node, or not at all. */
export const hotBackupModes = ['Frozen', 'Staged', 'Warm'] as const
export const diskUses = ['Encrypted', 'None'] as const

/** Nodes that may keep memory beside those of the set's own pods: where the template may run, or all. */
export const holderChoices = ['Matching', 'Any'] as const
export type HotBackupMode = (typeof hotBackupModes)[number]

export const protections = ['Frozen', 'Staged', 'Warm', 'Cold', 'None'] as const
export type Protection = (typeof protections)[number]

/**
 * How a successor got its slot's memory: it lay frozen in it, it was staged on its node, it was fetched from another
 * node, it ran and was given a pulled state; a cold backup was woken for it, a pod was created for it; or nobody had it and the slot began anew.
 */
export const origins = ['Frozen', 'Staged', 'Fetched', 'Warm', 'Cold', 'Created', 'Empty'] as const
export type OriginOfMemory = (typeof origins)[number]

/** Where saved states come from: the memory of processes, or what the application says of itself. */
export const checkpointSources = ['criu', 'http'] as const
export type CheckpointSource = (typeof checkpointSources)[number]

export const pushMethods = ['POST', 'PUT', 'PATCH'] as const
export type PushMethod = (typeof pushMethods)[number]

export const protocols = ['TCP', 'UDP'] as const
export type Protocol = (typeof protocols)[number]

export type PodTemplate = Wire<V1PodTemplateSpec>

export interface StrategySpec
  extends Readonly<Partial<Record<PlacementKey, Placement> & Record<ChoiceKey, Strategy>>> {}

export interface UpdateStrategySpec {
  readonly type?: UpdateStrategy
  /** Memory that no pod of the new template can be given may be lost. */
  readonly allowStateLoss?: boolean
}

export interface LivenessSpec {
  /** Milliseconds between two probes. */
  readonly periodMilliseconds?: number
  /** Failures in a row that count as a death. */
  readonly failureThreshold?: number
}

export interface FailoverSpec {
  /** 0: never. */
  readonly unreadySeconds?: number
  readonly crashLoop?: CrashLoopPolicy
  /** The template's livenessProbe, asked by the node's agent. */
  readonly liveness?: LivenessSpec
}

export interface HttpHeader {
  readonly name: string
  readonly value: string
}

/** Where the application gives its state to a GET, and takes it. */
export interface HttpSourceSpec {
  readonly port: number
  readonly path?: string
  /** Of both requests. */
  readonly headers?: readonly HttpHeader[]
  /** A size such as `16Mi`. */
  readonly maxSize?: string
  /** For one request. */
  readonly timeoutSeconds?: number
  /** For a successor to take the state, from the moment at which its containers may start. */
  readonly restoreSeconds?: number
  readonly push?: {
    readonly path?: string
    readonly method?: PushMethod
    readonly headers?: readonly HttpHeader[]
    /** Also to hot backups, each time it was pulled. */
    readonly everyInterval?: boolean
  }
}

/** Its presence asks for the primaries' memory to be kept. */
export interface CheckpointSpec {
  readonly source?: CheckpointSource
  readonly http?: HttpSourceSpec
  /** A duration such as `10s` or `500ms`. */
  readonly interval?: string
  /** Of the time, for which a primary may stand still; the interval grows to keep it. */
  readonly maxFreezePercent?: number
  /** Names; all when absent. */
  readonly containers?: readonly string[]
  readonly volumes?: { readonly maxSize?: string }
  /** Nodes that keep a slot's generations. */
  readonly copies?: number
  /** Which nodes these may be. */
  readonly holders?: HolderChoice
  /** Generations kept on each. */
  readonly keep?: number
  /** A slot without primary whose memory is kept, and could not be brought back for so long, begins anew. 0: never. */
  readonly giveUpAfterSeconds?: number
  /** A duration such as `10m`: so long the memory of a slot is kept that a smaller `replicas` takes away. `0s`: not at all. */
  readonly retain?: string
  /** Whether these nodes may also write them to their disks, encrypted. */
  readonly disk?: DiskUse
}

export type DiskUse = (typeof diskUses)[number]

export type HolderChoice = (typeof holderChoices)[number]

export interface HotBackupSpec {
  readonly mode?: HotBackupMode
}

export interface ServicePortSpec {
  readonly name?: string
  readonly port: number
  /** Default: as `port`. A number: ports of an EndpointSlice have no other names. */
  readonly targetPort?: number
  readonly protocol?: Protocol
}

export interface ServiceSpec {
  /** Of the Service in front of all primaries; none when absent. */
  readonly name?: string
  readonly ports: readonly ServicePortSpec[]
  /** One Service for each slot, `<set>-<slot>`, whose address outlives failovers. */
  readonly perSlot?: boolean
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
  readonly antiAffinity?: AntiAffinity
  readonly updateStrategy?: UpdateStrategySpec
  readonly failover?: FailoverSpec
  readonly checkpoint?: CheckpointSpec
  readonly hotBackup?: HotBackupSpec
  readonly service?: ServiceSpec
  readonly template: PodTemplate
}

/** What the API server fills in, and what a set means that was stored without it. */
export const defaults = Object.freeze({
  replicas: 1,
  hotBackups: 0,
  coldBackups: 0,
  strategy: 'random',
  schedulerName: 'default-scheduler',
  wakeupTimeout: 5,
  gatePosition: 'First',
  paused: false,
  antiAffinity: 'Preferred',
  updateStrategy: 'RollingUpdate',
  /** What is carried may not fit another template, so an edit of it changes nothing by itself. */
  updateStrategyWithMemory: 'OnDelete',
  allowStateLoss: false,
  unreadySeconds: 30,
  crashLoop: 'Replace',
  checkpoint: Object.freeze({
    interval: '10s',
    maxFreezePercent: 2,
    copies: 2,
    holders: 'Matching',
    keep: 2,
    giveUpAfterSeconds: 0,
    retain: '10m',
    disk: 'Encrypted',
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
  /** Where a set asks for memory and does not say how. */
  hotBackupMode: 'Frozen',
  liveness: Object.freeze({ periodMilliseconds: 1_000, failureThreshold: 3 }),
  protocol: 'TCP',
  perSlot: false,
} as const)

/** Bounds, inclusive. */
export const limits = Object.freeze({
  /** Characters: pod names append `-` and 12 hex digits, and as labels may have 63. */
  name: 50,
  /** Pods of one kind. */
  count: { min: 0, max: 10_000 },
  /** Seconds. */
  wakeupTimeout: { min: 1, max: 300 },
  /** Seconds. */
  unreadySeconds: { min: 0, max: 86_400 },
  /** Characters. */
  schedulerName: { min: 1, max: 253 },
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
  /** Failovers listed in the status; the ledger has more. */
  failovers: 10,
  /** Entries of a list in the status: etcd and every watcher pay for each. The counts go on. */
  listed: 200,
  /** Characters of a condition: its reason and its message. */
  conditionReason: 1024,
  conditionMessage: 32_768,
  /** Nodes listed for one slot: of 200 slots that makes a status that can still be stored. */
  usableOn: 10,
} as const)

export interface Condition {
  readonly type: string
  readonly status: 'True' | 'False' | 'Unknown'
  readonly reason: string
  readonly message: string
  readonly lastTransitionTime: string
  readonly observedGeneration: number
}

export interface SlotStatus {
  readonly slot: number
  readonly pod: string
  readonly node?: string
  readonly epoch: number
  readonly ready: boolean
  /** The rest only of sets that keep memory. The newest generation that a holder has; 0: none. */
  readonly generation?: number
  /** RFC 3339: the moment whose memory a successor would have, or an earlier one: it is written once a minute. */
  readonly savedAt?: string
  /** Seconds between two checkpoints, as the node adapts it to how long the primary may stand still. */
  readonly intervalSeconds?: number
  /** Why that is longer than the interval asked for; a text, for a later agent may know more reasons. */
  readonly intervalReason?: string
  /** Seconds from the stop of the primary until that generation was complete on its holder. */
  readonly pipelineSeconds?: number
  /** Nodes on which it could be taken over. */
  readonly usableOn?: readonly string[]
  /** How many they are, where not all are listed. */
  readonly usableOnCount?: number
  readonly protection?: Protection
  /** The last time that this slot changed hands after a loss. */
  readonly lastFailover?: SlotFailover
}

/** A slot that a smaller `replicas` has taken away, and whose memory is kept for a while. */
export interface RetainedSlot {
  readonly slot: number
  /** Name of its last primary. */
  readonly pod: string
  /** RFC 3339. */
  readonly since: string
  /** RFC 3339: a set that is made larger before then has it back. */
  readonly until: string
  /** The newest generation that a node keeps. */
  readonly generation: number
  /** Nodes that keep something of it. */
  readonly keptOn: readonly string[]
  /** How many they are, where not all are listed. */
  readonly keptOnCount?: number
}

export interface SlotFailover {
  readonly from: string
  readonly to: string
  readonly reason: string
  readonly seconds: number
  /** RFC 3339. */
  readonly at: string
  readonly stateAge?: number
}

export interface LastTransition {
  readonly pod: string
  readonly from: PodKind
  readonly to: PodKind
  /** RFC 3339. */
  readonly at: string
}

export interface LastFailover {
  readonly slot: number
  readonly from: string
  readonly to: string
  readonly reason: string
  /** From the first sight of the loss to the accepted write that put the successor on stage. */
  readonly seconds: number
  /** RFC 3339. */
  readonly at: string
  /** The rest only with memory. */
  readonly how?: OriginOfMemory
  /** Generation that was restored, and how old it was, in seconds. */
  readonly generation?: number
  readonly stateAge?: number
  /** Seconds of each step, in order. */
  readonly phases?: Readonly<Record<string, number>>
}

/** current/desired of each kind, as printed by `kubectl get bps`. */
export interface Summary {
  readonly replicas: string
  readonly hotbackups: string
  readonly coldbackups: string
}

export interface BackupPodSetStatus {
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
  /** Only of sets that keep memory, and while there are any. */
  readonly retainedSlots?: readonly RetainedSlot[]
  /** How many they are, where not all are listed. */
  readonly retainedSlotCount?: number
  readonly lastTransition?: LastTransition
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
