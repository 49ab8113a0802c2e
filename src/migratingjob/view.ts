/** The facts about one Job from which the next step is decided. */
import type { MigratingPod } from '../api/migrating-pod.ts'
import type { Job } from '../kube/resources.ts'

/** The MigratingPod of the Job's name. */
export type PodFact =
  | { readonly type: 'absent' }
  /** It belongs to something else: the Job waits until the name is free. */
  | { readonly type: 'taken'; readonly owner: string }
  | { readonly type: 'ending' }
  | { readonly type: 'ours'; readonly pod: MigratingPod }

export interface JobView {
  readonly job: Job
  readonly pod: PodFact
  /** Why the MigratingPod could not be written. */
  readonly refused?: string
}

/** The next step for the MigratingPod. `write`: create it, or give it the spec that the Job asks for. */
export type PodAction = 'write' | 'delete' | 'keep'

export interface JobPlan {
  readonly action: PodAction
  readonly status: NonNullable<Job['status']>
  /** Ms until the deadline of the Job, the next try of a refused write, or the next step. */
  readonly requeueAfterMs?: number
}
