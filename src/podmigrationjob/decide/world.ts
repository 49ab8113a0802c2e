/** Jobs, and the world around them, as the rules of arbitration see both. */
import type { JobMode, SkipGate } from '../../api/pod-migration-job.ts'
import type { LabelSelector } from '../../kube/label-selector.ts'
import type { Pod } from '../../kube/resources.ts'
import type { NodeFacts } from '../../slot/decide/may-run-on.ts'

/** Koordinator's classes of quality of service, the most demanding first. */
export const qosClasses = ['SYSTEM', 'LSE', 'LSR', 'LS', 'BE'] as const
export type QosClass = (typeof qosClasses)[number]

interface JobFacts {
  /** Unique among all jobs. */
  readonly key: string
  readonly name: string
  /** By the clock of the API server, ms since the epoch. */
  readonly createdAt: number
}

/** A job that is not yet admitted. */
export interface WaitingJob extends JobFacts {
  readonly mode: JobMode
  /** With the uid that the job names, or that its pod had when the operator first looked. */
  readonly pod: { readonly namespace: string; readonly name: string; readonly uid: string | undefined }
  readonly skipGates: ReadonlySet<SkipGate>
  readonly priority: number
  /** Uid of a pod whose places are lent to this one: it stays as long as this one gives way to its replacement. */
  readonly lentBy?: string | undefined
  /** For how long this process has seen the job, ms: a cache may be older than the job. */
  readonly seenForMs: number
}

/** The place of a pod in the budgets. */
export interface Place {
  readonly uid: string
  readonly namespace: string
  readonly node: string | undefined
  /** Key of its workload. */
  readonly workload: string | undefined
}

/** A job that is admitted and has not ended. Its pod may be gone. */
export interface RunningJob extends JobFacts {
  readonly place: Place
  /** Keys of the disruption budgets from which the removal of the pod has still to be taken. */
  readonly disruptionBudgets: readonly string[]
}

/** Thousandths by the name of the resource. */
export type Amounts = Readonly<Record<string, number>>

export interface NodeRoom extends NodeFacts {
  readonly allocatable: Amounts
  /** It is ready, and not cordoned. */
  readonly isSchedulable: boolean
}

export interface PodFacts {
  readonly uid: string
  readonly namespace: string
  readonly name: string
  readonly node: string | undefined
  readonly labels: Readonly<Record<string, string>>
  readonly isReady: boolean
  readonly isTerminating: boolean
  /** Seconds that it may still take to end, of a pod that is being deleted. */
  readonly graceSeconds: number | undefined
  readonly isFailed: boolean
  readonly qos: QosClass
  readonly priority: number
  readonly evictionCost: number
  /** As its annotation says it; undefined: it has none, or none that a ReplicaSet reads. */
  readonly deletionCost: string | undefined
  /** Which job or tool asks its controller to remove it; undefined: none, or a text that does not say. */
  readonly softEvictionBy: string | undefined
  readonly owner:
    | { readonly type: 'none' }
    /** The caches do not show the controller of its controller. */
    | { readonly type: 'unknown'; readonly name: string }
    | { readonly type: 'workload'; readonly key: string; readonly kind: string }
  /** The kubelet runs it from a file of the node. */
  readonly isStatic: boolean
  readonly hasLocalStorage: boolean
  readonly hasClaim: boolean
  readonly isSystemCritical: boolean
  /** Keys of the PodDisruptionBudgets that select it. */
  readonly disruptionBudgets: readonly string[]
  /** The node for which it is nominated while it has none. */
  readonly nominated: string | undefined
  /** The scheduler removes it for a pod of a higher priority. */
  readonly isPreempted: boolean
  /** Its share of a node; nothing if it has ended. */
  readonly requests: Amounts
  /** Its class of priority lets the scheduler remove others for it. */
  readonly preempts: boolean
  /** Selectors of pods in its namespace: it may not run on their nodes. */
  readonly apart: readonly LabelSelector[]
  /** More than requests, labels, names, taints and pods on the same node decide where it may run. */
  readonly isUnjudged: boolean
  /** The fields of its spec that say where it may run. */
  readonly placement: Pick<NonNullable<Pod['spec']>, 'nodeSelector' | 'affinity' | 'tolerations'>
}

export interface WorkloadFacts {
  /** Pods that it wants. */
  readonly desired: number
  /** A new revision is on its way, or its controller has not seen its last change. */
  readonly isRolling: boolean
  /** Uids of its pods that are ready and stay. */
  readonly healthy: ReadonlySet<string>
  /** Uids of its other pods that have not finished. */
  readonly unhealthy: ReadonlySet<string>
}

export interface DisruptionBudget {
  readonly name: string
  /** Its status is about its present spec. */
  readonly isCurrent: boolean
  readonly allowed: number
  readonly currentHealthy: number
  readonly desiredHealthy: number
  /** Pods that are not ready may go in any case. */
  readonly sparesUnready: boolean
}

export interface World {
  /** By `namespace/name`. */
  readonly pods: ReadonlyMap<string, PodFacts>
  readonly workloads: ReadonlyMap<string, WorkloadFacts>
  readonly disruptionBudgets: ReadonlyMap<string, DisruptionBudget>
  /** By name. */
  readonly nodes: ReadonlyMap<string, NodeRoom>
  readonly history: History
}

/** Counts of earlier jobs: of those that have ended and are not deleted yet. */
export interface History {
  /** Failed jobs by uid of their pod. */
  readonly failures: ReadonlyMap<string, number>
  /** Jobs that have succeeded, by workload. */
  readonly descheduled: ReadonlyMap<string, number>
}
