/**
 * The Migration resource in its serialized form: one move of one pod, with its memory, to another node. A user who deletes it
 * before the slot has changed hands calls the move off.
 */
import type { Condition } from '../kube/conditions.ts'
import type { KubeObject } from '../kube/object.ts'
import type { Resource } from '../kube/resources.ts'

/** Which migrations come first while not all can run: the first of these. */
export const migrationPriorities = ['SystemCritical', 'UserTriggered', 'SystemMaintenance'] as const
export type MigrationPriority = (typeof migrationPriorities)[number]

/**
 * The meanings of `maxDowntime`. `Live`: the pod is never stopped for longer. `LiveIfPossible`: the Migration looks for a moment in which it is
 * not; after some generations the pod moves all the same, if a restart would be longer, or if its node is drained.
 */
export const migrationTechniques = ['LiveIfPossible', 'Live'] as const
export type MigrationTechnique = (typeof migrationTechniques)[number]

/**
 * How the memory gets to the new node. `Direct`: the agents send it from node to node. The others are known, and refused with a reason:
 * `transferRefusal`.
 */
export const migrationTransfers = ['Direct', 'SharedVolume', 'ClaimedVolume'] as const
export type MigrationTransfer = (typeof migrationTransfers)[number]

export const transferRefusal =
  'set transfer to Direct or remove it: agents send the memory from node to node, encrypted and signed. Shared and claimed volumes are not supported: the memory would be written and read twice, on storage that other pods may mount'

/**
 * When the memory is copied. `PreCopy`: while the pod runs, again and again; it is stopped for the last changes only. The others are
 * known, and refused with a reason: `copyRefusal`.
 */
export const migrationCopies = ['PreCopy', 'PostCopy', 'Hybrid'] as const
export type MigrationCopy = (typeof migrationCopies)[number]

export const copyRefusal =
  'set copy to PreCopy or remove it: the new node has all memory before the pod runs there. PostCopy and Hybrid are not supported: the pod would run on the new node while pages are still on the old one, and the loss of either node would end it'

/**
 * The fate of the pod's connections. `Close`: their clients connect again, and reach the new pod. `Keep` is known, and refused with a
 * reason: `connectionsRefusal`.
 */
export const migrationConnections = ['Close', 'Keep'] as const
export type MigrationConnections = (typeof migrationConnections)[number]

export const connectionsRefusal =
  'set connections to Close or remove it: the new pod has another address, so open connections end, and clients connect again through the Service. Keep is not supported: it needs a network that moves the address of a pod'

/**
 * `Pending`: it waits for others, or for its source. `Reserving`: a pod is made and scheduled that will take the slot.
 * `Preparing`: that pod gets the memory while the source runs. `Stopping`: the source is stopped, and its last changes are
 * saved. `Switching`: the other pod has the slot, and resumes.
 */
export const migrationPhases = [
  'Pending',
  'Reserving',
  'Preparing',
  'Stopping',
  'Switching',
  'Succeeded',
  'Failed',
] as const
export type MigrationPhase = (typeof migrationPhases)[number]

export interface MigrationSpec {
  /** The pod that moves, in the namespace of the Migration. */
  readonly source: {
    readonly name: string
    /** Absent: the pod that has the name when the operator first looks. */
    readonly uid?: string
  }
  /** Labels that the new node must have, beside those that the pod itself selects. */
  readonly addedNodeSelector?: Readonly<Record<string, string>>
  readonly priority?: MigrationPriority
  /** A duration such as `300ms`: the source is not stopped if that would last longer. Absent: however long. */
  readonly maxDowntime?: string
  /** Absent: `LiveIfPossible` with the priority `SystemCritical`, else `Live`. */
  readonly technique?: MigrationTechnique
  /** Absent: `Direct`. */
  readonly transfer?: MigrationTransfer
  /** Absent: `PreCopy`. */
  readonly copy?: MigrationCopy
  /** Absent: `Close`. */
  readonly connections?: MigrationConnections
  /** How long the new pod may wait for a node. */
  readonly unschedulableTimeoutSeconds?: number
  /** How long it may take in all until the source is stopped. */
  readonly pendingTimeoutSeconds?: number
  /** The Migration is deleted so long after its end. Absent: when five later ones of the set have ended. */
  readonly ttlSecondsAfterFinished?: number
}

export interface MigrationStatus {
  readonly phase?: MigrationPhase
  /** When each phase began the first time. */
  readonly phaseTimes?: readonly { readonly phase: MigrationPhase; readonly at: string }[]
  readonly source?: {
    readonly uid: string
    readonly node: string
    /** Name of its BackupPodSet. */
    readonly set: string
    readonly slot: number
  }
  readonly target?: {
    readonly name: string
    readonly uid: string
    readonly node?: string
  }
  /** The last generation that the source has saved, and its size. */
  readonly generation?: number
  readonly bytes?: number
  /** From the operator's first sight of the request to stop until it saw the successor serve. Absent: not measured. */
  readonly downtimeMilliseconds?: number
  /** How long that would last, by the prediction before the pod was stopped. */
  readonly predictedDowntimeMilliseconds?: number
  /** How long a restart of the pod takes at least. */
  readonly predictedRestartMilliseconds?: number
  /** True: the pod is stopped although that will be longer than `maxDowntime`. */
  readonly acceptsDowntime?: boolean
  readonly conditions?: readonly Condition[]
}

export interface Migration extends KubeObject {
  readonly spec: MigrationSpec
  readonly status?: MigrationStatus
}

export const migrationDefaults = Object.freeze({
  priority: 'UserTriggered',
  unschedulableTimeoutSeconds: 300,
  pendingTimeoutSeconds: 900,
} as const)

/** Bounds, inclusive. */
export const migrationLimits = Object.freeze({
  /** Milliseconds. */
  maxDowntime: { min: 10, max: 600_000 },
  /** Seconds. A Migration that waits keeps its place in the budgets, which others share. */
  timeout: { min: 1, max: 3_600 },
  /** Seconds: thirty days at most. */
  ttl: { min: 0, max: 2_592_000 },
  /** Labels in `addedNodeSelector`. */
  labels: 16,
} as const)

export const migrations: Resource<Migration> = Object.freeze({
  group: 'backup.example.com',
  version: 'v1alpha1',
  plural: 'migrations',
  kind: 'Migration',
  namespaced: true,
})

/** Type of the condition: True or False once it has ended, Unknown before. */
export const migrationSucceeded = 'Succeeded'

/** Returns what its condition says of its end; undefined: the operator has not seen it yet. */
export const outcomeOf = ({ status }: Pick<Migration, 'status'>): Condition | undefined =>
  status?.conditions?.find(({ type }) => type === migrationSucceeded)

/** Returns when the phase first began, as the status says it; undefined: it has not. */
export const phaseTime = (
  { phaseTimes }: Pick<MigrationStatus, 'phaseTimes'>,
  phase: MigrationPhase | undefined,
): string | undefined => phaseTimes?.find(each => each.phase === phase)?.at

export const isFinished = ({ status }: Pick<Migration, 'status'>): boolean =>
  status?.phase === 'Succeeded' || status?.phase === 'Failed'

/** True once the operator has let it begin, until it ends: its set acts for it. */
export const isUnderWay = ({ metadata, status }: Migration): boolean =>
  metadata.deletionTimestamp === undefined &&
  (status?.phase === 'Reserving' ||
    status?.phase === 'Preparing' ||
    status?.phase === 'Stopping' ||
    status?.phase === 'Switching')

/**
 * The order in which Migrations of a set choose their pods: by priority, then those that began first. A Migration
 * that has begun can lose its pod only to a Migration with a higher priority.
 */
export function byPrecedence(a: Migration, b: Migration): number {
  const rank = ({ spec: { priority = migrationDefaults.priority } }: Migration) =>
    migrationPriorities.indexOf(priority)
  const times = ({ metadata, status = {} }: Migration) =>
    `${phaseTime(status, 'Reserving')} ${metadata.creationTimestamp} ${metadata.name}`
  return rank(a) - rank(b) || (times(a) < times(b) ? -1 : 1)
}
