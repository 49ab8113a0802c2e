import { slotName } from '../../checkpoint/manifest.ts'
import type { TaskOf } from '../decide/task.ts'
import { generationsOf, memoryOf } from '../observe/generations.ts'
import { fits } from '../observe/pod-facts.ts'
import { reasonOf } from '../report/failure.ts'
import { isOf } from '../state/understudies.ts'
import type { RestoreContext } from './bring-back.ts'
import { bringBack, isSameGeneration } from './bring-back.ts'
import type { OffStageContext } from './off-stage.ts'
import { takeOffStage } from './off-stage.ts'
import type { TaskContext } from './task-context.ts'

type FreezeContext = RestoreContext &
  OffStageContext &
  Pick<TaskContext, 'understudies' | 'generations' | 'progress' | 'slotHeldBy' | 'event'>

/** Keeps the newest generation of a slot frozen in an understudy: each new one replaces the old one. */
export async function freeze(
  work: FreezeContext,
  { pod, lease }: TaskOf<'freeze'>,
  signal: AbortSignal,
): Promise<void> {
  const { understudies, generations, store, progress, log } = work
  const slot = slotName(lease)
  /** Directories of generations that could not be restored: a second try would only cost time. */
  const failed = new Set<string>()
  const place = await understudies.enter(pod, signal)
  await takeOffStage(work, pod, place, signal)
  for (;;) {
    signal.throwIfAborted()
    // Begins to wait before it looks, so that no generation in between is missed.
    const ended = new AbortController()
    const next = generations.wait(slot, AbortSignal.any([signal, ended.signal]))
    next.catch(() => undefined)
    const candidate = generationsOf(store, lease).find(
      one =>
        !failed.has(one.dir) &&
        one.manifest.restoreHash === pod.restoreHash &&
        fits(pod, { memory: memoryOf(one) }),
    )
    if (candidate === undefined || (isOf(place.clone, lease) && isSameGeneration(place.clone, candidate))) {
      await next
      continue
    }
    ended.abort()
    try {
      // The primary is stopped for the last generation: pages of large memory may arrive while the app runs here.
      await bringBack(work, place, candidate, unlessCalled(work, pod.uid, slot, signal), {
        ...(candidate.manifest.final && { lazily: 'Large' }),
        clients: 'Recent',
      })
      progress.succeeded(slot)
    } catch (error) {
      if (signal.aborted) throw error
      failed.add(candidate.dir)
      const { reason, message } = reasonOf(error)
      progress.failed(slot, reason, message)
      work.event(pod, 'Warning', reason, 'Freeze', message)
      // The task itself continues with the next generation.
      work.metrics.failed('freeze', reason)
      log.warn(
        { err: error, pod: pod.name, slot, generation: candidate.manifest.generation },
        'cannot restore and freeze a generation',
      )
    }
  }
}

/**
 * Aborts with `signal`, unless the understudy is being promoted for the same slot: then the restore in progress is the
 * fastest way on stage.
 */
function unlessCalled(work: FreezeContext, uid: string, slot: string, signal: AbortSignal): AbortSignal {
  const end = new AbortController()
  const onAbort = () => {
    if (work.slotHeldBy(uid) !== slot) end.abort(signal.reason)
  }
  if (signal.aborted) onAbort()
  else signal.addEventListener('abort', onAbort, { once: true })
  return end.signal
}
