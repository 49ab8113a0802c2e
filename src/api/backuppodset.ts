/** BackupPodSet as it is on the wire. `test/apiserver` compares it with the CRD. */
import type { V1PodTemplateSpec } from '@kubernetes/client-node'
import type { KubeObject, Wire } from '../kube/object.ts'
import type { Resource } from '../kube/resources.ts'
import type { PodKind } from './labels.ts'

export const strategies = ['random', 'oldest', 'newest', 'spread'] as const
export type Strategy = (typeof strategies)[number]

export const strategyKeys = [
  'init',
  'unallocatedToColdbackup',
  'unallocatedToHotbackup',
  'unallocatedToReplicas',
  'coldbackupToHotbackup',
  'coldbackupToReplicas',
  'hotbackupToReplicas',
  'replicasToUnallocated',
  'hotbackupToUnallocated',
  'coldbackupToUnallocated',
] as const
export type StrategyKey = (typeof strategyKeys)[number]

export type PodTemplate = Wire<V1PodTemplateSpec>

export interface BackupPodSetSpec {
  readonly replicas?: number
  readonly hotBackups?: number
  readonly coldBackups?: number
  readonly strategy?: Readonly<Partial<Record<StrategyKey, Strategy>>>
  readonly schedulerName?: string
  /** Seconds for the whole wake-up of one cold backup. */
  readonly wakeupTimeout?: number
  readonly gatePosition?: 'First' | 'Last'
  readonly paused?: boolean
  readonly antiAffinity?: 'Preferred' | 'Required' | 'None'
  readonly updateStrategy?: { readonly type?: 'RollingUpdate' | 'OnDelete' }
  readonly failover?: { readonly unreadySeconds?: number; readonly crashLoop?: 'Replace' | 'Ignore' }
  readonly template: PodTemplate
}

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
  /** current/desired, as printed by `kubectl get bps`. */
  readonly summary?: { readonly replicas: string; readonly hotbackups: string; readonly coldbackups: string }
  readonly selector?: string
  readonly slots?: readonly SlotStatus[]
  readonly lastTransition?: LastTransition
  readonly lastFailover?: LastFailover
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
