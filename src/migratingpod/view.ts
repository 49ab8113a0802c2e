/** The facts about one MigratingPod from which its status is decided. */
import type { BackupPodSetStatus } from '../api/backuppodset.ts'
import type { MigratingPod } from '../api/migrating-pod.ts'
import type { MigrationPhase } from '../api/migration.ts'
import type { Carried } from './carried.ts'

/** A pod of the set, with its labels and annotations. */
export interface PodFacts extends Partial<Carried> {
  readonly name: string
  readonly node: string | undefined
  /** It has the slot. */
  readonly isPrimary: boolean
  readonly epoch: number
  /** It is being deleted, or only waits until the last connections through it end. */
  readonly isLeaving: boolean
  /** Its phase is Running. */
  readonly runs: boolean
  /** How often its app has been started again in it, from an empty state. Absent in an understudy, whose app the kubelet does not start, and while another pod has the slot. */
  readonly restarts?: number
  /** Why the memory could not be restored in it, as its agent says. */
  readonly failed?: string
}

/** A Migration of the pod. */
export interface MigrationFacts {
  readonly name: string
  readonly phase: MigrationPhase
  /** Names of the pod that moves and of its successor. */
  readonly from: string
  readonly to: string | undefined
  /** RFC 3339: when it ended. */
  readonly endedAt: string | undefined
  readonly downtimeMs: number | undefined
}

export type SetFacts =
  | { readonly type: 'absent' }
  /** Another owner has a set of this name, or a user has. */
  | { readonly type: 'taken'; readonly owner: string | undefined }
  /** It is being deleted: another one is made after it. */
  | { readonly type: 'ending' }
  | { readonly type: 'ours'; readonly generation: number; readonly status: BackupPodSetStatus | undefined }

export interface MigratingPodView {
  readonly object: MigratingPod
  readonly set: SetFacts
  readonly pods: readonly PodFacts[]
  readonly migrations: readonly MigrationFacts[]
  /** Why the set could not be written. */
  readonly refused?: string
}
