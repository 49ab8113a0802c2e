/** A job and the facts about it, as the rules see them. */
import type { Migration } from '../../api/migration.ts'
import type { ParsedJobOrRefused } from '../../api/parse-pod-migration-job.ts'
import type { ParsedReservation } from '../../api/parse-reservation.ts'
import type { JobPhase, PodMigrationJob, PodMigrationJobStatus } from '../../api/pod-migration-job.ts'
import type { ObjectReference, Reservation, ReservationStatus } from '../../api/reservation.ts'
import type { Resource } from '../../kube/resources.ts'
import type { PodFacts } from './world.ts'

export interface JobView {
  /** Koordinator's kind or ours. */
  readonly resource: Resource<PodMigrationJob>
  /** Unique among the jobs of both kinds. */
  readonly key: string
  readonly name: string
  readonly uid: string
  readonly resourceVersion: string
  readonly generation: number
  /** By the clock of the API server, ms since the epoch. */
  readonly createdAt: number
  readonly parsed: ParsedJobOrRefused
  readonly status: PodMigrationJobStatus
  /** For how long this process has seen the job, ms. */
  readonly seenForMs: number
  /** The pod that is to go. Undefined: the caches do not show it, or another pod has its name. */
  readonly pod: PodFacts | undefined
  /** The workload of the pod rolls out a change. */
  readonly isRolling: boolean
  /** The workload of the pod has pods that are not ready. */
  readonly hasUnready: boolean
  /** The request for the eviction of the pod, as this process knows it. */
  readonly eviction: EvictionRequest
  readonly live: LiveFacts
  readonly reservation: ReservationFacts
  /** The jobs that the operator has created for the pods that give way to the replacement. */
  readonly preemptions: readonly PreemptionFacts[]
  /** The job for which the operator has created this one; undefined: a user has created it. */
  readonly preemptor: Preemptor | undefined
}

export interface Preemptor {
  /** It does not wait for this pod, or not any more. */
  readonly isOver: boolean
  readonly isPaused: boolean
  /** Uid of the pod that it replaces. */
  readonly source: string | undefined
}

/** A job for a pod that gives way. */
export interface PreemptionFacts {
  readonly job: string
  readonly pod: { readonly namespace: string; readonly name: string; readonly uid: string | undefined }
  readonly status: PodMigrationJobStatus
  /** Undefined: it has none yet, or none any more. */
  readonly reservation: Pick<ReservationStatus, 'phase' | 'nodeName'> | undefined
}

/** `none`: the pod is not asked to go, or the API server has refused. `unanswered`: it may have been accepted. */
export type EvictionRequest = 'none' | 'unanswered' | 'accepted'

/** The Migration of a job with mode `Live`. */
export type LiveFacts =
  | { readonly type: 'absent'; readonly seenForMs: number }
  /** A Migration has the name, and does not belong to the job. */
  | { readonly type: 'foreign' }
  | {
      readonly type: 'present'
      readonly uid: string
      readonly resourceVersion: string
      readonly phase: NonNullable<Migration['status']>['phase']
      readonly reason: string
      readonly message: string
      readonly target: NonNullable<Migration['status']>['target']
    }

/** Whether the scheduler may see the pod of a Reservation that has a gate. */
export type Gate =
  | { readonly type: 'open' }
  /** The node has room, and the pod is not nominated for it yet. */
  | { readonly type: 'room'; readonly node: string }
  /** These pods leave the node. */
  | {
      readonly type: 'giveWay'
      readonly node: string
      readonly pods: readonly PodFacts[]
      /** The status of the job names node and pods. */
      readonly isAnnounced: boolean
    }
  | { readonly type: 'closed'; readonly why: 'noRoom' | 'unjudged' }

/** The pod that holds the room of a Reservation. */
export interface ReservedPod {
  readonly uid: string
  readonly resourceVersion: string
  readonly node: string | undefined
  /** Why no node takes it, in the scheduler's words. */
  readonly unschedulable: string | undefined
  /** The scheduler does not see it yet. */
  readonly isGated: boolean
  /** The node for which it is nominated while it has none. */
  readonly nominated: string | undefined
  readonly isReady: boolean
  readonly isTerminating: boolean
  /** The workload has it as one of its pods. */
  readonly isAdopted: boolean
}

/** The Reservation of a job with mode `ReservationFirst`. */
export type ReservationFacts =
  | { readonly type: 'absent'; readonly seenForMs: number }
  /** A Reservation has the name, and does not belong to the job. */
  | { readonly type: 'foreign' }
  | {
      readonly type: 'present'
      readonly resource: Resource<Reservation>
      readonly name: string
      readonly uid: string
      readonly resourceVersion: string
      /** The operator has created it for the job. */
      readonly isOwned: boolean
      /** An earlier job uses it. */
      readonly isTaken: boolean
      /** Its status names its workload's pod. */
      readonly isBound: boolean
      readonly owner: ParsedReservation['owner'] | undefined
      /** Why it holds no room, or none any more. */
      readonly failure: { readonly reason: string; readonly message: string } | undefined
      /** Undefined: it is not created yet, or gone. */
      readonly pod: ReservedPod | undefined
    }

export type PresentReservation = Extract<ReservationFacts, { type: 'present' }>

/** How a job ends after an act, or if the API server refuses the act for good. */
interface End {
  readonly phase: JobPhase
  readonly reason: string
  readonly message: string
}

/** An act that the status of its job announces. It is done once the API server has the status. */
export type Action =
  | { readonly type: 'evict'; readonly view: JobView; readonly pod: PodFacts }
  | {
      readonly type: 'createMigration'
      readonly view: JobView
      readonly pod: PodFacts
      readonly name: string
    }
  | { readonly type: 'createReservation'; readonly view: JobView; readonly pod: PodFacts }
  /** A job for a pod that gives way to the replacement. */
  | {
      readonly type: 'preempt'
      readonly view: JobView
      readonly victim: ObjectReference
      readonly ttlMs: number
    }
  /** The grace period of a pod that its ReplicaSet deletes. */
  | { readonly type: 'shorten'; readonly view: JobView; readonly pod: PodFacts }
  /** The reference in the spec of the job. */
  | { readonly type: 'referTo'; readonly view: JobView; readonly reservation: PresentReservation }
  | {
      readonly type: 'adopt'
      readonly view: JobView
      readonly pod: PodFacts
      readonly reservation: PresentReservation
      readonly replacement: ReservedPod
    }
  | {
      readonly type: 'restoreDeletionCost'
      readonly view: JobView
      readonly pod: PodFacts
      /** Undefined: the pod had none. */
      readonly cost: string | undefined
      readonly end: End
    }
  /** Takes the request of a soft eviction back. */
  | { readonly type: 'withdraw'; readonly view: JobView; readonly pod: PodFacts; readonly end: End }
  | { readonly type: 'deleteReservation'; readonly view: JobView; readonly reservation: PresentReservation }
  | {
      readonly type: 'deleteMigration'
      readonly view: JobView
      readonly namespace: string
      readonly name: string
      readonly uid: string
      readonly resourceVersion: string
    }
