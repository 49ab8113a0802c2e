import { slotName } from '../../checkpoint/manifest.ts'
import { abortAfter } from '../../kube/abort.ts'
import { dumpDeadlineMs } from '../../slot/decide/deadlines.ts'
import type { TaskOf } from '../decide/task.ts'
import { isServing } from '../observe/pod-facts.ts'
import type { PodView } from '../observe/snapshot.ts'
import { type AwaitSuccessorContext, untilSuccessorStandsBy } from './await-successor.ts'
import { handoverStop } from './hand-over.ts'
import { keeping } from './record.ts'
import { type SaveContext, saveOnce } from './save-once.ts'
import type { TaskContext } from './task-context.ts'
import { type UnfitContext, whyUnfit } from './worth-saving.ts'

export type SaveLastContext = SaveContext &
  UnfitContext &
  AwaitSuccessorContext &
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
 * signal to end would end in the successor, too. It serves on until its successor stands by, if there is time for that. The primary
 * stays stopped, so that it answers no client after that.
 *
 * @returns true if it stands, and its memory is saved up to the last instruction.
 * @throws the signal's reason.
 */
export async function saveLast(
  work: SaveLastContext,
  { pod, lease, lastSave }: TaskOf<'stopPrimary'>,
  signal: AbortSignal,
): Promise<boolean> {
  const { sentinel, understudies, clock, log, fencing } = work
  const leftMs = () => leftOf(work.podOf(pod.uid) ?? pod, clock.now())
  const untilKnownMs = leftOf(pod, clock.now())
  if (lastSave === undefined || untilKnownMs < leastMs || fencing.isFenced(pod.uid)) return false
  const slot = slotName(lease)
  // After the dump, the agent hashes, compares and signs it. That does not use the pod, so a signal to end comes too late to be in it.
  const standsMs = Math.min(
    untilKnownMs + dumpDeadlineMs(work.store.latest(lease)?.manifest.bytes),
    (pod.heldEnd?.killedAt ?? 0) - clock.now() - skewMs,
  )
  using unknowing = abortAfter(clock, untilKnownMs, () => new Error('the app may know of its end'))
  using over = abortAfter(clock, standsMs, () => new Error(`not within ${Math.round(standsMs)} ms`))
  const late = AbortSignal.any([signal, unknowing.signal, over.signal])
  const isFit = async (): Promise<boolean> => {
    const now = work.podOf(pod.uid) ?? pod
    const problem = isServing(now)
      ? await whyUnfit(work, { pod }, late, answersMs)
      : 'its pod is not ready any more'
    if (problem === undefined) return true
    log.info({ pod: pod.name, slot, problem }, 'deleted primary does not serve, and is not saved any more')
    return false
  }
  const unfit = new Error('the app does not serve any more')
  let resumeProbes: (() => void) | undefined
  try {
    const { located } = await understudies.enter(pod, late)
    // It has been well when it was stopped for its successor, and answers no probe until it resumes.
    const isHandedOver = await sentinel.keep(handoverStop(pod), standsMs + endsMs, late)
    if (!isHandedOver && !(await isFit())) return false
    // Pages in transit arrive sooner while the app runs.
    await work.lazyPages.whole(pod.uid, late)
    const isValid = (now: PodView) => leftOf(now, clock.now()) > 0
    // Without its other containers, the app may fail its clients, or fail itself.
    const servesOn = !isHandedOver && pod.heldEnd?.isWhole === true
    const recorded = servesOn
      ? await untilSuccessorStandsBy(work, { pod, lease, policy: lastSave }, { isValid, leftMs }, late)
      : 'No'
    if (servesOn && !(await isFit())) return false
    // A stopped primary fails its probes, which is no death.
    resumeProbes = work.suspendProbes(pod.uid)
    const cgroups = located.containers.flatMap(container => container.cgroups)
    let stoppedAt = clock.monotonic()
    const stop = async () => {
      // The successor continues with what it is now, and with nothing before: that was some time ago.
      if (servesOn && !(await isFit())) throw unfit
      stoppedAt = clock.monotonic()
      // It outlasts the dump, whose own stop ends with the dump.
      await sentinel.stop({ name: `last-${pod.uid}`, deadlineMs: standsMs + endsMs, cgroups }, late)
    }
    if (!servesOn) await stop()
    const stored = await saveOnce(work, { pod, lease, policy: keeping(lastSave, recorded) }, late, {
      ...{ isLast: true, isRecordRequested: recorded !== 'No', isValid, ...(servesOn && { stop }) },
      onDumped: () => unknowing[Symbol.dispose](),
    })
    const { generation } = stored.manifest
    const ms = Math.round(clock.monotonic() - stoppedAt)
    log.info({ pod: pod.name, slot, generation, ms }, 'deleted primary saved once more')
    return true
  } catch (error) {
    signal.throwIfAborted()
    if (error === unfit) return false
    log.warn({ err: error, pod: pod.name, slot }, 'deleted primary not saved any more')
    return false
  } finally {
    resumeProbes?.()
  }
}

/** Returns how long the app certainly does not know of its end, ms. Clocks that differ too much say nothing. */
function leftOf({ heldEnd }: PodView, now: number): number {
  if (heldEnd === undefined) return 0
  const leftMs = heldEnd.until - now
  return leftMs > heldEnd.forMs + skewMs ? 0 : leftMs - skewMs
}
