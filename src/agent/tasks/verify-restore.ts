import { AgentError } from '../../api/agent-errors.ts'
import { slotName } from '../../checkpoint/manifest.ts'
import type { TaskOf } from '../decide/task.ts'
import { generationsOf } from '../observe/generations.ts'
import type { RestoreContext } from './bring-back.ts'
import { bringBack } from './bring-back.ts'
import type { OffStageContext } from './off-stage.ts'
import { takeOffStage } from './off-stage.ts'
import type { TaskContext } from './task-context.ts'

type VerifyContext = RestoreContext & OffStageContext & Pick<TaskContext, 'understudies' | 'progress'>

/**
 * Restores memory of a kind once, to see whether this node can, and discards it. The clone stays frozen and never runs.
 */
export async function verifyRestore(
  work: VerifyContext,
  { pod, lease }: TaskOf<'verifyRestore'>,
  signal: AbortSignal,
): Promise<void> {
  const { understudies, store, driver, progress } = work
  const place = await understudies.enter(pod, signal)
  await takeOffStage(work, pod, place, signal)
  const newest = generationsOf(store, lease).find(({ manifest }) => manifest.restoreHash === pod.restoreHash)
  if (newest === undefined) throw new AgentError('RestoreFailed', 'this node has no generation to try')
  const clone = await bringBack(work, place, newest, signal)
  place.put(undefined)
  await driver.discard(clone)
  progress.succeeded(slotName(lease))
}
