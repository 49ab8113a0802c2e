/**
 * The MigratingPod resource in its serialized form: one logical pod, which moves between nodes with its memory. The
 * operator keeps a BackupPodSet of the same name for it, with one primary and no backups, as a Deployment keeps a ReplicaSet.
 */
import type { Condition } from '../kube/conditions.ts'
import type { KubeObject } from '../kube/object.ts'
import { controllerOf } from '../kube/owner.ts'
import type { Resource } from '../kube/resources.ts'
import type { CheckpointSpec, Completion, FailoverSpec, PodTemplate, ServiceSpec } from './backuppodset.ts'
import { prefix } from './labels.ts'

/** The fields of `checkpoint` that make sense for one pod without backups. */
export const movingCheckpointKeys = [
  'interval',
  'maxFreezePercent',
  'containers',
  'volumes',
  'copies',
  'holders',
  'keep',
  'giveUpAfterSeconds',
  'disk',
  'drain',
] as const satisfies readonly (keyof CheckpointSpec)[]

export const movingFailoverKeys = [
  'nodeTimeout',
  'fencing',
  'liveness',
] as const satisfies readonly (keyof FailoverSpec)[]

export interface MigratingPodSpec {
  /** True: the pod ends with its memory saved, and continues with it when this is false. */
  readonly suspend?: boolean
  /** A pod of the same namespace with a copy of whose memory the first pod begins. Another name counts until its memory is there. */
  readonly clonePod?: string
  /** How its memory is saved between moves. Absent: with all defaults. */
  readonly checkpoint?: Pick<CheckpointSpec, (typeof movingCheckpointKeys)[number]>
  readonly failover?: Pick<FailoverSpec, (typeof movingFailoverKeys)[number]>
  /** A Service that always leads to the pod. */
  readonly service?: Required<Pick<ServiceSpec, 'name'>> & Pick<ServiceSpec, 'ports'>
  readonly template: PodTemplate
}

/**
 * `Creating`: no pod of it has run yet. `MigrationPending`: its pod is to move, or is being deleted, and no other pod is there
 * yet. `Migrating`: another pod is there, and takes over. `Suspending`: its pod is to end. `Suspended`: it has ended, and its memory is
 * kept. `Completed`: its app has ended with success, which only restartPolicy OnFailure allows. `Invalid`: it cannot be managed; the condition Ready says why.
 */
export const migratingPodStates = [
  ...(['Creating', 'Running', 'MigrationPending', 'Migrating'] as const),
  ...(['Suspending', 'Suspended', 'Completed', 'Invalid'] as const),
] as const
export type MigratingPodState = (typeof migratingPodStates)[number]

export interface LastMove {
  readonly from: string
  readonly to: string
  /** `Migration`, or why the pod before was lost. */
  readonly reason: string
  /** For how long no pod ran, as the operator saw it; absent: not measured. */
  readonly seconds?: number
  /** Age of the restored memory when it was restored; absent: nothing was lost, or nothing was restored. */
  readonly stateAge?: number
  /** RFC 3339. */
  readonly at: string
}

export interface MigratingPodStatus {
  readonly observedGeneration?: number
  readonly state?: MigratingPodState
  /** Name of the pod that runs the app. */
  readonly activePod?: string
  readonly node?: string
  /** Name of the Migration that moves it. */
  readonly migration?: string
  /** The newest saved state that another node has, and the time of its memory. */
  readonly generation?: number
  readonly savedAt?: string
  readonly lastMove?: LastMove
  /** How often its app has ended by itself and was continued or started again; absent: never. */
  readonly failures?: number
  /** Name of the last pod from which another one had to continue for this reason. */
  readonly lastFailure?: string
  /** How often the app was started from an empty state in the pod that runs, because nothing of it was saved; absent: never. */
  readonly restarts?: number
  readonly completion?: Completion
  readonly conditions?: readonly Condition[]
}

export interface MigratingPod extends KubeObject {
  readonly spec: MigratingPodSpec
  readonly status?: MigratingPodStatus
}

export const migratingPods: Resource<MigratingPod> = Object.freeze({
  group: 'backup.example.com',
  version: 'v1alpha1',
  plural: 'migratingpods',
  kind: 'MigratingPod',
  namespaced: true,
})

/** On the set of a MigratingPod: its name. The admission policies tell these sets from those of users by it. */
export const migratingPodLabel = `${prefix}migrating-pod`

/** On the set of a MigratingPod: hash of the spec that the operator wrote last. */
export const writtenSpecAnnotation = `${prefix}written-spec`

/** On the set of a MigratingPod: keys of labels and annotations that its template has or had. The pod does not take them to the next one. */
export const templateKeysAnnotation = `${prefix}template-keys`

/** True for a set that a MigratingPod owns: its pods are numbered, `NAME-0`, `NAME-1` and so on. */
export function isOfMigratingPod(set: KubeObject): boolean {
  const owner = controllerOf(set)
  return owner?.kind === migratingPods.kind && owner.apiVersion.startsWith(`${migratingPods.group}/`)
}
