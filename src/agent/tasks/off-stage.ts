import { AgentError } from '../../api/agent-errors.ts'
import { podConditions, servingReasons } from '../../api/pod-contract.ts'
import { slotName } from '../../checkpoint/manifest.ts'
import type { PodView } from '../observe/snapshot.ts'
import type { Place } from '../state/understudies.ts'
import { dropWatch, watchesOf } from './remains.ts'
import type { TaskContext } from './task-context.ts'

export type OffStageContext = Pick<
  TaskContext,
  'sentinel' | 'deaths' | 'driver' | 'inquiry' | 'patch' | 'podOf' | 'log'
>

/**
 * Takes a promoted understudy off the stage after its promotion was withdrawn: two pods must not run with one memory,
 * and the understudy must be ready for another promotion. First its condition says that it does not serve, or the next
 * promotion would take the old condition for the answer. Then its watches go: its end is not a death, and no agent
 * would open the redirect again. Then the app ends.
 *
 * @throws AgentError StillCalled if the API server says that the pod is the slot's primary: our cache is stale.
 */
export async function takeOffStage(
  { sentinel, deaths, driver, inquiry, patch, podOf, log }: OffStageContext,
  pod: PodView,
  place: Place,
  signal: AbortSignal,
): Promise<void> {
  const watches = await watchesOf(sentinel, pod.uid, signal)
  const clone = place.clone?.stage === 'Thawed' ? place.clone : undefined
  const { status, reason } = podOf(pod.uid)?.serving ?? {}
  const isSaid = status === 'True' || reason === servingReasons.resuming
  if (watches.length === 0 && clone === undefined && !isSaid) return
  // An app that is ended is lost, so a cache is not enough.
  if (clone !== undefined && (await inquiry.lease(clone.slot, signal))?.holder.uid === pod.uid)
    throw new AgentError('StillCalled', slotName(clone.slot))
  log.info({ pod: pod.name }, 'ending the app of an understudy')
  await patch(
    pod,
    {
      type: podConditions.serving,
      status: 'False',
      reason: servingReasons.offStage,
      message: 'its slot has another primary',
    },
    signal,
  )
  for (const { name } of watches) await dropWatch(sentinel, name, signal)
  deaths.forget(pod.uid)
  if (clone === undefined) return
  await driver.discard(clone)
  place.put(undefined)
}
