import { slotName } from '../../checkpoint/manifest.ts'
import { abortAfter } from '../../kube/abort.ts'
import { dumpDeadlineMs } from '../../slot/decide/deadlines.ts'
import type { TaskOf } from '../decide/task.ts'
import type { PodView } from '../observe/snapshot.ts'
import { handoverStop } from './hand-over.ts'
import { type SaveContext, saveOnce } from './save-once.ts'
import type { TaskContext } from './task-context.ts'
import { type UnfitContext, whyUnfit } from './worth-saving.ts'

export type SaveLastContext = SaveContext &
  UnfitContext &
  Pick<TaskContext, 'sentinel' | 'lazyPages' | 'fencing' | 'log'>

/** By how much the clocks of this node and of the API server may differ, ms. With a greater difference nothing is saved. */
const skewMs = 1_500

/** With less time than this no dump is begun, ms. */
const leastMs = 500

/** How long an app may take to answer the probe before its last save, ms. */
const answersMs = 500

/** How long the primary stays stopped after the time is over, ms: it is killed meanwhile. */
const endsMs = 5_000

/**
 * Stops a primary that is being deleted, and saves it once more, as long as its app does not know of its end: a memory that has got the
 * signal to end would end in the successor, too. The primary stays stopped, so that it answers no client after that.
 *
 * @returns true if its memory is saved up to the last instruction.
 * @throws the signal's reason.
 */
export async function saveLast(
  work: SaveLastContext,
  { pod, lease, lastSave }: TaskOf<'stopPrimary'>,
  signal: AbortSignal,
): Promise<boolean> {
  const { sentinel, understudies, clock, log, fencing } = work
  const leftMs = leftOf(pod, clock.now())
  if (lastSave === undefined || leftMs < leastMs || fencing.isFenced(pod.uid)) return false
  const slot = slotName(lease)
  // After the dump, the agent hashes, compares and signs it. That does not use the pod, so a signal to end comes too late to be in it.
  const stoodMs = Math.min(
    leftMs + dumpDeadlineMs(work.store.latest(lease)?.manifest.bytes),
    (pod.heldEnd?.killedAt ?? 0) - clock.now() - skewMs,
  )
  using unknowing = abortAfter(clock, leftMs, () => new Error('the app may know of its end'))
  using over = abortAfter(clock, stoodMs, () => new Error(`not within ${Math.round(stoodMs)} ms`))
  const late = AbortSignal.any([signal, unknowing.signal, over.signal])
  const startedAt = clock.monotonic()
  // A stopped primary fails its probes, which is no death.
  const resumeProbes = work.suspendProbes(pod.uid)
  try {
    const { located } = await understudies.enter(pod, late)
    // It has been well when it was stopped for its successor, and answers no probe until it resumes.
    const isStanding = await sentinel.keep(handoverStop(pod), stoodMs + endsMs, late)
    const latest = work.store.latest(lease)?.manifest
    // Nothing has changed since.
    if (isStanding && latest?.final && latest.source.podUid === pod.uid) return true
    const problem = isStanding ? undefined : await whyUnfit(work, { pod }, late, answersMs)
    if (problem !== undefined) {
      log.info({ pod: pod.name, slot, problem }, 'deleted primary does not serve, and is not saved any more')
      return false
    }
    // Pages in transit arrive sooner while the app runs.
    await work.lazyPages.whole(pod.uid, late)
    const cgroups = located.containers.flatMap(container => container.cgroups)
    // It outlasts the dump, whose own stop ends with the dump.
    await sentinel.stop({ name: `last-${pod.uid}`, deadlineMs: stoodMs + endsMs, cgroups }, late)
    const stored = await saveOnce(work, { pod, lease, policy: lastSave }, late, {
      isLast: true,
      isValid: now => leftOf(now, clock.now()) > 0,
      onDumped: () => unknowing[Symbol.dispose](),
    })
    const { generation } = stored.manifest
    const ms = Math.round(clock.monotonic() - startedAt)
    log.info({ pod: pod.name, slot, generation, ms }, 'deleted primary saved once more')
    return true
  } catch (error) {
    signal.throwIfAborted()
    log.warn({ err: error, pod: pod.name, slot }, 'deleted primary not saved any more')
    return false
  } finally {
    resumeProbes()
  }
}

/** Returns how long the app certainly does not know of its end, ms. Clocks that differ too much say nothing. */
function leftOf({ heldEnd }: PodView, now: number): number {
  if (heldEnd === undefined) return 0
  const leftMs = heldEnd.until - now
  return leftMs > heldEnd.forMs + skewMs ? 0 : leftMs - skewMs
}
