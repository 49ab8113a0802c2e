import type { DutyOf } from './duty.ts'
import { takeOffStage } from './off-stage.ts'
import type { Work } from './work.ts'

/**
 * Takes away what lies in an understudy for nobody: the memory of a slot that has another heir now, or an app that was
 * brought on stage for a slot which then was given to somebody else.
 */
export async function clear(
  work: Work,
  { pod, frozenToo }: DutyOf<'clear'>,
  signal: AbortSignal,
): Promise<void> {
  const place = await work.understudies.enter(pod, signal)
  if (!pod.terminating || place.clone?.stage === 'Thawed') await takeOffStage(work, pod, place, signal)
  if (place.clone === undefined || !frozenToo) return
  const { slot, generation, stage } = place.clone
  work.log.info({ pod: pod.name, slot: slot.slot, generation, stage }, 'an understudy is emptied')
  await work.driver.discard(place.clone)
  place.put(undefined)
}
