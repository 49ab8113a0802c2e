/**
 * The Reservation resource in its serialized form: room for one more pod of a workload, held by a real pod until the workload adopts it. Its
 * fields are those of Koordinator's Reservation that a cluster with any scheduler can keep.
 */
import type { Condition } from '../kube/conditions.ts'
import type { KubeObject } from '../kube/object.ts'
import type { Resource } from '../kube/resources.ts'

/** `Available`: the pod has a node. `Succeeded`: a workload has adopted it. */
export const reservationPhases = ['Pending', 'Available', 'Succeeded', 'Failed'] as const
export type ReservationPhase = (typeof reservationPhases)[number]

export const selectorOperators = ['In', 'NotIn', 'Exists', 'DoesNotExist', 'Gt', 'Lt'] as const
export const tolerationOperators = ['Exists', 'Equal'] as const
export const taintEffects = ['NoSchedule', 'PreferNoSchedule', 'NoExecute'] as const

export interface NodeRequirement {
  readonly key: string
  readonly operator: (typeof selectorOperators)[number]
  readonly values?: readonly string[]
}

export interface NodeTerm {
  readonly matchExpressions?: readonly NodeRequirement[]
  readonly matchFields?: readonly NodeRequirement[]
}

export interface Toleration {
  readonly key?: string
  readonly operator?: (typeof tolerationOperators)[number]
  readonly value?: string
  readonly effect?: (typeof taintEffects)[number]
}

/** The fields of a pod's spec that say where it may run. A workload gets no pod that differs from its template in anything else. */
export interface Placement {
  readonly nodeName?: string
  readonly nodeSelector?: Readonly<Record<string, string>>
  readonly affinity?: {
    readonly nodeAffinity?: {
      readonly requiredDuringSchedulingIgnoredDuringExecution?: {
        readonly nodeSelectorTerms: readonly NodeTerm[]
      }
    }
  }
  readonly tolerations?: readonly Toleration[]
}

export interface PlacementTemplate {
  readonly spec?: Placement
}

export interface ReservationSpec {
  /** Added to the template of the owner. */
  readonly template?: PlacementTemplate
  /** The ReplicaSet whose pod it is going to be. */
  readonly owners: readonly {
    readonly controller: {
      readonly apiVersion?: string
      readonly kind?: 'ReplicaSet'
      readonly namespace: string
      readonly name: string
      readonly uid?: string
    }
  }[]
  /** A duration such as `24h`; `0s`: it does not expire. */
  readonly ttl?: string
  /** RFC 3339; stronger than `ttl`. */
  readonly expires?: string
  readonly allocateOnce?: boolean
}

/** A reference to an object, as Kubernetes' ObjectReference. */
export interface ObjectReference {
  readonly apiVersion?: string
  readonly kind?: string
  readonly namespace?: string
  readonly name: string
  readonly uid?: string
}

export interface ReservationStatus {
  readonly phase?: ReservationPhase
  readonly nodeName?: string
  /** The pod that holds the room. */
  readonly podRef?: ObjectReference
  /** The pod, as soon as its workload has it. */
  readonly currentOwners?: readonly ObjectReference[]
  readonly conditions?: readonly Condition[]
}

export interface Reservation extends KubeObject {
  readonly spec: ReservationSpec
  readonly status?: ReservationStatus
}

/** Bounds, inclusive. */
export const reservationLimits = Object.freeze({
  /** Milliseconds; 0 is none. */
  ttl: { min: 0, max: 30 * 86_400_000 },
  defaultTtlMs: 86_400_000,
  owners: 1,
  terms: 16,
  requirements: 16,
  values: 64,
  tolerations: 16,
  nodeSelector: 32,
  conditions: 4,
} as const)

const reservationResource = (group: string): Resource<Reservation> =>
  Object.freeze({
    ...{ group, version: 'v1alpha1', plural: 'reservations' },
    ...{ kind: 'Reservation', namespaced: false },
  })

export const reservations = reservationResource('backup.example.com')

/** The same kind in Koordinator's group, for clusters in which Koordinator itself is not installed. */
export const koordinatorReservations = reservationResource('scheduling.koordinator.sh')

/** Types of the conditions of Reservations. */
export const reservationConditions = {
  /** True when its pod has a node. */
  scheduled: 'Scheduled',
  /** True as long as a workload may adopt its pod, or has it. */
  ready: 'Ready',
} as const

export const isFinishedReservation = ({ status }: Pick<Reservation, 'status'>): boolean =>
  status?.phase === 'Succeeded' || status?.phase === 'Failed'
