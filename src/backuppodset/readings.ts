/** What is read of a pod alone, once for each version of it: every pass looks at all pods, and most are as they were. */
import { createMemo } from '../kube/memo.ts'
import type { Pod } from '../kube/resources.ts'
import { stageOf } from './memory/stage.ts'
import type { StageView } from './memory/view.ts'
import { viewOf } from './pod/view.ts'
import type { PodView } from './snapshot.ts'

export interface Readings {
  /** While nothing wakes it. */
  readonly viewOf: (pod: Pod) => PodView | undefined
  readonly stageOf: (pod: Pod) => StageView
}

export const createReadings = (): Readings => ({
  viewOf: createMemo((pod: Pod) => viewOf(pod, undefined)),
  stageOf: createMemo(stageOf),
})
