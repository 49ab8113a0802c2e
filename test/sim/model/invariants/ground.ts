/** The facts that the rules share. */
import { type BackupPodSet, backupPodSets } from '../../../../src/api/backuppodset.ts'
import type { NumberedSlotLease } from '../../../../src/api/numbered-slot.ts'
import { type Lease, leases, resourceName } from '../../../../src/kube/resources.ts'
import { type Cluster, setRef } from '../cluster.ts'
import type { Bounds } from './bounds.ts'
import type { Fates, LeaseOf } from './fates.ts'
import type { Health } from './health.ts'

export interface Violation {
  /** The violated rule. */
  readonly rule:
    | 'TwoRun'
    | 'MemoryThrownAway'
    | 'ImpostorSaved'
    | 'OldMemory'
    | 'NotServed'
    | 'WrongSlot'
    | 'OtherSetsMemory'
    | 'ImpostorAnswers'
    | 'LongOutage'
    | 'Needless'
    | 'NotCalled'
    | 'GrantBroken'
    | 'NotConsented'
    | 'SlotMoved'
    | 'StrandedStays'
    | 'TooManyDeleted'
    | 'NotSaved'
    | 'TwoServe'
    | 'ServesOn'
    | 'StaysStopped'
    | 'LateTakeover'
    | 'EndsSoon'
    | 'MoveLost'
    | 'SleepLost'
    | 'MoveLies'
    | 'MoveHangs'
    | 'Crash'
  readonly at: number
  readonly what: string
}

/** Notes a violation once for each rule and key. */
export type Violate = (rule: Violation['rule'], key: string, what: string) => void

export interface Ground {
  readonly cluster: Cluster
  readonly bounds: Bounds
  /** Time between two checkpoints, ms. */
  readonly intervalMs: number
  readonly violate: Violate
  readonly leaseOf: LeaseOf
  readonly health: Health
  readonly fates: Fates
  /** Returns when the set's spec last changed, ms. */
  readonly editedAt: () => number
}

export const setOf = ({ server }: Cluster): BackupPodSet | undefined => server.find(backupPodSets, setRef)

export interface LeaseEvent {
  readonly type: string
  readonly object: Lease
  readonly before: NumberedSlotLease | undefined
  readonly lease: NumberedSlotLease
  /** The Lease belongs to the set that exists: a deleted set has no guarantees. */
  readonly isOfSet: boolean
}

export function onLeases({ cluster, leaseOf }: Ground, listener: (event: LeaseEvent) => void): void {
  cluster.server.subscribe((resource, { type, object, old }) => {
    if (resource !== resourceName(leases)) return
    const lease = leaseOf(object as Lease)
    if (lease === undefined) return
    const isOfSet = object.metadata.ownerReferences?.[0]?.uid === setOf(cluster)?.metadata.uid
    const before = old && leaseOf(old as Lease)
    listener({ type, object: object as Lease, before, lease, isOfSet })
  })
}
