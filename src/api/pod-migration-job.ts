/**
 * The PodMigrationJob resource in its serialized form: a request to take one pod away from its node safely. All pending jobs are
 * judged together, and only as many begin as the budgets allow.
 */
import type { Condition } from '../kube/conditions.ts'
import type { KubeObject } from '../kube/object.ts'
import type { Resource } from '../kube/resources.ts'
import type { ObjectReference, PlacementTemplate, ReservationPhase } from './reservation.ts'

/**
 * `ReservationFirst`: a replacement is scheduled and ready before the pod goes. `EvictDirectly`: the pod is evicted at once. `Live`:
 * the pod moves with its memory.
 */
export const jobModes = ['ReservationFirst', 'EvictDirectly', 'Live'] as const
export type JobMode = (typeof jobModes)[number]

export const jobPhases = ['Pending', 'Running', 'Succeed', 'Failed', 'Aborted'] as const
export type JobPhase = (typeof jobPhases)[number]

/** Rules that refuse a pod, and that a job may skip. */
export const skipGates = [
  'BarePod',
  'LocalStorage',
  'SystemCritical',
  'PersistentVolumeClaim',
  'LabelSelector',
  'ExpectedReplicas',
  'RollingOut',
] as const
export type SkipGate = (typeof skipGates)[number]

/** The fields of `metav1.DeleteOptions` that a job may set. */
export interface JobDeleteOptions {
  readonly apiVersion?: string
  readonly kind?: string
  readonly gracePeriodSeconds?: number
  readonly preconditions?: { readonly uid?: string; readonly resourceVersion?: string }
}

export interface ReservationOptions {
  /** The Reservation that the job uses. Absent: the operator creates one, and writes it here. */
  readonly reservationRef?: ObjectReference
  /** Where the replacement may run, for the Reservation that the operator creates. */
  readonly template?: { readonly spec?: { readonly template?: PlacementTemplate } }
  /** Present: pods of a lower priority may give way to the replacement. Each has a replacement of its own before it goes. */
  readonly preemptionOptions?: Readonly<Record<string, never>>
}

export interface PodMigrationJobSpec {
  /** True: the job waits. */
  readonly paused?: boolean
  /** True: the job ends as `Aborted`, unless the pod is already going. */
  readonly abort?: boolean
  /** A duration such as `5m0s`, counted from the phase `Running`. */
  readonly ttl?: string
  readonly mode?: JobMode
  readonly podRef: {
    readonly apiVersion?: string
    readonly kind?: string
    readonly namespace: string
    readonly name: string
    /** Absent: the pod that has the name when the operator first looks. */
    readonly uid?: string
  }
  readonly reservationOptions?: ReservationOptions
  readonly deleteOptions?: JobDeleteOptions
  readonly skipGates?: readonly SkipGate[]
  /** Why the gates are skipped. */
  readonly skipReason?: string
}

/** The Reservation of a pod that gives way to the replacement of a job. */
export interface PreemptedPodReservation {
  readonly namespace: string
  readonly name: string
  readonly nodeName?: string
  readonly phase?: ReservationPhase
  readonly preemptedPodRef: ObjectReference
  /** The pods that replace it. */
  readonly podsRef?: readonly ObjectReference[]
}

export interface PodMigrationJobStatus {
  readonly phase?: JobPhase
  /** Type of the condition that was written last; `Complete` at the end. */
  readonly status?: string
  readonly reason?: string
  readonly message?: string
  /** Node of the pod that replaces the other one. */
  readonly nodeName?: string
  /** The pod that replaces the other one. */
  readonly podRef?: { readonly namespace: string; readonly name: string; readonly uid?: string }
  /** The pod that is to go, as the operator has found it. */
  readonly source?: {
    readonly uid: string
    readonly nodeName?: string
    /** `Deployment/NAMESPACE/NAME`. */
    readonly workload?: string
    /** Its deletion cost before a job with mode `ReservationFirst` changes it; absent: it has none. */
    readonly deletionCost?: string
  }
  /** Name and uid of the Migration of a job with mode `Live`; without the uid it is not created yet. */
  readonly migration?: { readonly name: string; readonly uid?: string }
  /** The Reservation that holds room for the replacement; without the uid it is not created yet. */
  readonly reservation?: { readonly name: string; readonly uid?: string }
  /** The node on which pods give way to the replacement. */
  readonly preemptionNodeName?: string
  /** The pods that give way, or that the scheduler has removed for the replacement. */
  readonly preemptedPodsRef?: readonly ObjectReference[]
  readonly preemptedPodsReservation?: readonly PreemptedPodReservation[]
  /** The mode under which the job was admitted. */
  readonly mode?: JobMode
  /** When the phase `Running` began, RFC 3339. */
  readonly startTime?: string
  readonly completionTime?: string
  readonly conditions?: readonly Condition[]
}

export interface PodMigrationJob extends KubeObject {
  readonly spec: PodMigrationJobSpec
  readonly status?: PodMigrationJobStatus
}

/** Bounds, inclusive. */
export const jobLimits = Object.freeze({
  /** Milliseconds. */
  ttl: { min: 1_000, max: 86_400_000 },
  /** Seconds. */
  gracePeriod: { min: 0, max: 86_400 },
  skipReason: { min: 1, max: 1_024 },
  conditions: 10,
  /** Pods that may give way to one replacement. */
  preemptedPods: 8,
} as const)

const jobResource = (group: string): Resource<PodMigrationJob> =>
  Object.freeze({
    ...{ group, version: 'v1alpha1', plural: 'podmigrationjobs' },
    ...{ kind: 'PodMigrationJob', namespaced: false },
  })

export const podMigrationJobs = jobResource('backup.example.com')

/** The same kind in Koordinator's group, for clusters in which Koordinator itself is not installed. */
export const koordinatorJobs = jobResource('scheduling.koordinator.sh')

/** Our definition of Koordinator's kind has this label. The operator ignores jobs of any other definition. */
export const koordinatorMark = { label: 'backup.example.com/serves', value: 'koordinator' } as const

/** An int32: a pod with a lower cost is evicted first. */
export const evictionCostAnnotation = 'scheduling.koordinator.sh/eviction-cost'
/** A pod with this cost is never removed. */
export const neverEvict = 2_147_483_647

/** Asks the controller of a pod to remove it, in its own way and time. The value is JSON. */
export const softEvictionAnnotation = 'scheduling.koordinator.sh/soft-eviction'

export const koordinatorQosLabel = 'koordinator.sh/qosClass'

/** On a job, an int32: among pods of one class and priority, the higher one comes first. */
export const migrationPriorityAnnotation = 'backup.example.com/migration-priority'

/** On a pod that holds the room of a Reservation: the uid of the Reservation. */
export const reservationLabel = 'backup.example.com/reservation'

/**
 * A scheduling gate of the replacement of a job with `preemptionOptions`. The scheduler would remove pods of a lower priority for it, so it does
 * not see the pod before a node has room.
 */
export const roomGate = 'backup.example.com/room'

/** No pod of these gives way: the policies of the components have the same list. */
export const isSystemNamespace = (namespace: string): boolean =>
  namespace.startsWith('kube-') || ['understudy-system', 'understudy-agents'].includes(namespace)

/** Among pods that are equally ready, a ReplicaSet deletes the cheapest pod first. */
export const lowestDeletionCost = '-2147483648'

/** Types of the conditions of jobs. */
export const jobConditions = {
  /** True once the job may begin; False with the budget or rule for which it waits. */
  arbitrated: 'Arbitrated',
  /** True when the pod is gone. */
  eviction: 'Eviction',
  /** True when the Reservation exists, and the job refers to it. */
  reservationCreated: 'ReservationCreated',
  /** True when the replacement has a node. */
  reservationScheduled: 'ReservationScheduled',
  /** True when the replacement is ready. */
  boundPodReady: 'BoundPodReady',
  /** True when the workload has adopted the replacement. */
  podBound: 'PodBoundReservation',
  /** True when the Reservation says the same. */
  reservationBound: 'ReservationBound',
  /** True when a pod that had no node at the beginning of its job has a node. */
  podScheduled: 'PodScheduled',
  /** True when the pods that gave way are gone, and the replacement has their node. */
  preemption: 'Preemption',
  /** True when the pod has moved with its memory. */
  migrated: 'Migrated',
} as const

export const isFinishedJob = ({ status }: Pick<PodMigrationJob, 'status'>): boolean =>
  status?.phase === 'Succeed' || status?.phase === 'Failed' || status?.phase === 'Aborted'
