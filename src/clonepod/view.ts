/** The facts about one ClonePod from which the next step is decided. */
import type { BackupPodSetSpec } from '../api/backuppodset.ts'
import type { ClonePod, ClonePodStatus } from '../api/clone-pod.ts'
import type { MigratingPod, MigratingPodSpec } from '../api/migrating-pod.ts'
import type { ParsedClone } from '../api/parse-clone-pod.ts'

/** The pod to copy. The operator knows pods of sets only: another pod of that name looks like none. */
export type SourceFact =
  /** `now`: the pod of a MigratingPod that may have moved: its name has another number. */
  | { readonly type: 'absent'; readonly now?: string }
  /** It is no primary, or its memory is not saved. */
  | { readonly type: 'unsaved'; readonly why: string }
  | {
      readonly type: 'found'
      readonly uid: string
      readonly node: string | undefined
      readonly owner: MigratingPodSpec | BackupPodSetSpec
    }

/** The MigratingPod of the target's name. */
export type TargetFact =
  /** The cache is not complete yet. */
  | { readonly type: 'unknown' }
  | { readonly type: 'absent' }
  | { readonly type: 'ending' }
  /** It belongs to something else: the ClonePod waits until the name is free. */
  | { readonly type: 'taken'; readonly owner: string }
  /** `isReleased`: it is the user's own already. */
  | { readonly type: 'ours'; readonly pod: MigratingPod; readonly isReleased: boolean }

export interface CloneView {
  readonly object: ClonePod
  readonly parsed: ParsedClone
  readonly source: SourceFact
  readonly target: TargetFact
  /** ClonePods of the namespace that come before this one. */
  readonly before: number
  /** Why the MigratingPod could not be written. */
  readonly refused?: string
}

export type CloneAction =
  | { readonly type: 'none' }
  | { readonly type: 'create'; readonly spec: MigratingPodSpec }
  /** The copy becomes the user's own. */
  | { readonly type: 'release'; readonly pod: MigratingPod }
  | { readonly type: 'delete'; readonly pod: MigratingPod }
  /** Deletes the ClonePod itself. */
  | { readonly type: 'collect' }

export interface ClonePlan {
  readonly action: CloneAction
  readonly status: ClonePodStatus
  readonly requeueAfterMs?: number
}
