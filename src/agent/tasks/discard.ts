import type { TaskOf } from '../decide/task.ts'
import type { OffStageContext } from './off-stage.ts'
import { takeOffStage } from './off-stage.ts'
import type { TaskContext } from './task-context.ts'

type DiscardContext = OffStageContext & Pick<TaskContext, 'understudies'>

/**
 * Empties an understudy whose content no slot needs: the memory of a slot that has another heir now, or an app that was
 * put on stage for a slot which then went to another pod.
 */
export async function discard(
  work: DiscardContext,
  { pod, frozenToo }: TaskOf<'discard'>,
  signal: AbortSignal,
): Promise<void> {
  const place = await work.understudies.enter(pod, signal)
  if (!pod.terminating || place.clone?.stage === 'Thawed') await takeOffStage(work, pod, place, signal)
  if (place.clone === undefined || !frozenToo) return
  const { slot, generation, stage } = place.clone
  work.log.info({ pod: pod.name, slot: slot.name, generation, stage }, 'understudy emptied')
  await work.driver.discard(place.clone)
  place.put(undefined)
}
