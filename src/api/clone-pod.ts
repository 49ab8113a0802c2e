/**
 * The ClonePod resource in its serialized form: one copy of one pod with its memory, made once. The operator makes a MigratingPod for
 * it, which is the user's own as soon as it serves.
 */
import type { Condition } from '../kube/conditions.ts'
import type { KubeObject } from '../kube/object.ts'
import type { Resource } from '../kube/resources.ts'
import { limits } from './backuppodset.ts'
import { prefix } from './labels.ts'

/** `Pending`: it waits for its source, for the name of its target or for its turn. `Cloning`: its MigratingPod is there, and gets the memory. */
export const clonePodPhases = ['Pending', 'Cloning', 'Succeeded', 'Failed'] as const
export type ClonePodPhase = (typeof clonePodPhases)[number]

export interface ClonePodSpec {
  /** The pod to copy, in the same namespace. */
  readonly source: {
    readonly name: string
    /** Absent: the pod that has the name when the operator begins. */
    readonly uid?: string
  }
  /** The MigratingPod to make. Absent: with the name of the ClonePod. */
  readonly target?: { readonly name: string }
  /** How long it may take in all. */
  readonly timeoutSeconds?: number
  /** The ClonePod is deleted so long after its end. */
  readonly ttlSecondsAfterFinished?: number
}

export interface ClonePodStatus {
  readonly phase?: ClonePodPhase
  /** The pod that is copied, as the operator has found it. */
  readonly source?: { readonly uid: string; readonly node?: string }
  /** The MigratingPod, and its pod as soon as there is one. */
  readonly target?: {
    readonly name: string
    readonly uid: string
    readonly pod?: string
    readonly node?: string
  }
  /** RFC 3339. */
  readonly endedAt?: string
  readonly conditions?: readonly Condition[]
}

export interface ClonePod extends KubeObject {
  readonly spec: ClonePodSpec
  readonly status?: ClonePodStatus
}

export const clonePods: Resource<ClonePod> = Object.freeze({
  group: 'backup.example.com',
  version: 'v1alpha1',
  plural: 'clonepods',
  kind: 'ClonePod',
  namespaced: true,
})

/** Seconds. */
export const clonePodDefaults = Object.freeze({
  timeoutSeconds: 900,
  ttlSecondsAfterFinished: 3_600,
} as const)

/** Bounds, inclusive. */
export const clonePodLimits = Object.freeze({
  /** Characters of the name of the target. */
  name: { min: 1, max: limits.name },
  /** Seconds. */
  timeout: { min: 1, max: 3_600 },
  /** Seconds: thirty days at most. */
  ttl: { min: 0, max: 2_592_000 },
  /** ClonePods of a namespace that are carried out at a time. */
  atATime: 4,
} as const)

/** Type of the condition: True or False once it has ended, Unknown before. */
export const clonePodSucceeded = 'Succeeded'

/** On the MigratingPod of a ClonePod: its name. The admission policies tell these from those of users by it. */
export const clonePodLabel = `${prefix}clone-pod`

/** On the MigratingPod of a ClonePod: its uid, also when the MigratingPod has no owner any more. */
export const clonePodUidAnnotation = `${prefix}clone-pod-uid`

/** The reasons of the condition of ClonePods. The only table of these. */
export const clonePodReasons = Object.freeze({
  /** Others of the namespace come first. */
  waitsForTurn: 'WaitsForTurn',
  sourceNotFound: 'SourceNotFound',
  sourceReplaced: 'SourceReplaced',
  noMemory: 'NoMemory',
  nameTaken: 'NameTaken',
  refused: 'Refused',
  /** The MigratingPod has told nothing yet; else its own reason is repeated. */
  begins: 'Begins',
  targetDeleted: 'TargetDeleted',
  deadlineExceeded: 'DeadlineExceeded',
  invalidValue: 'InvalidValue',
  cloned: 'Cloned',
} as const)

export const isFinishedClone = ({ status }: Pick<ClonePod, 'status'>): boolean =>
  status?.phase === 'Succeeded' || status?.phase === 'Failed'
