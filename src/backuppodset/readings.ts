/**
 * Readings that depend on a pod alone, computed once for each version of it. Every pass looks at all pods, and most are
 * unchanged.
 */
import { createMemo } from '../kube/memo.ts'
import type { Pod } from '../kube/resources.ts'
import type { StageView } from '../slot/decide/memory-view.ts'
import { stageOf } from '../slot/observe/stage.ts'
import { viewOf } from './pod/view.ts'
import type { PodView } from './snapshot.ts'

export interface Readings {
  /** View of a pod that is not being woken. */
  readonly viewOf: (pod: Pod) => PodView | undefined
  readonly stageOf: (pod: Pod) => StageView
}

export const createReadings = (): Readings => ({
  viewOf: createMemo((pod: Pod) => viewOf(pod, undefined)),
  stageOf: createMemo(stageOf),
})
