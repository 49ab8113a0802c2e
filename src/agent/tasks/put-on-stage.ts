import { AgentError, isAgentError } from '../../api/agent-errors.ts'
import type { SlotLease } from '../../api/slot-lease.ts'
import type { Stored } from '../../checkpoint/store.ts'
import { stepsBehind } from '../../slot/decide/age.ts'
import type { Clone } from '../criu/memory-driver.ts'
import type { TaskOf } from '../decide/task.ts'
import { generationsOf, memoryOf, toldOf } from '../observe/generations.ts'
import { fits } from '../observe/pod-facts.ts'
import { isOf, type Place } from '../state/understudies.ts'
import type { RestoreContext } from './bring-back.ts'
import { bringBack, isSameGeneration } from './bring-back.ts'
import type { FetchContext } from './fetch.ts'
import { fetchNewest } from './fetch.ts'
import { keepStrangersOut } from './keep-out.ts'
import type { LeaseCheckContext } from './lease-check.ts'
import { confirm, insist, intervalOf, isTooOld, newerElsewhere } from './lease-check.ts'
import type { TaskContext } from './task-context.ts'
import { tellResuming } from './tell-resuming.ts'
import type { Timeline } from './timeline.ts'
import { untilTold } from './until-told.ts'
import { watchThaw } from './watch-thaw.ts'

export type OnStageContext = RestoreContext &
  FetchContext &
  LeaseCheckContext &
  Pick<
    TaskContext,
    'understudies' | 'lazyPages' | 'sentinel' | 'deaths' | 'fromDisk' | 'patch' | 'podOf' | 'elsewhere'
  >

/** The generation from which the clone was restored; undefined: this node does not keep it any more. */
export const generationOf = (
  { store }: Pick<TaskContext, 'store'>,
  lease: SlotLease,
  clone: Clone,
): Stored | undefined => generationsOf(store, lease).find(stored => isSameGeneration(clone, stored))

/**
 * Thaws the newest generation, and restores it first if it is not frozen here, or if the frozen clone is lost. If that fails, tries the one before.
 *
 * @throws the failure of the newest one: that is the one to know about.
 */
export async function onStage(
  work: OnStageContext,
  { pod, lease }: TaskOf<'promote'>,
  place: Place,
  timeline: Timeline,
  signal: AbortSignal,
): Promise<Clone> {
  const { driver, log } = work
  const there = place.clone
  // An earlier agent thawed it and got no further.
  if (isOf(there, lease) && there.stage === 'Thawed') {
    await confirm(work, lease, await tellResuming(work, pod, lease, signal), signal)
    await watchThaw(work, pod, there, signal)
    return driver.thaw(there)
  }
  await haveMemory(work, { pod, lease }, place, signal)
  timeline.mark('fetch')
  let failure: unknown
  let resumed: Clone | undefined
  const resume = async (stored: Stored): Promise<Clone> => {
    await insist(work, lease, stored, signal)
    const clone = await cloneOf(work, { pod, lease }, place, { stored, resumed }, timeline, signal)
    const isGranted = await tellResuming(work, pod, lease, signal)
    const { atLeast } = await confirm(work, lease, isGranted, signal)
    // The operator may have heard of newer memory since this node read the Lease.
    if (isTooOld(stored, atLeast, lease)) throw newerElsewhere(stored)
    timeline.mark('confirm')
    // It may have become the heir of more slots since the restore.
    await keepStrangersOut(work, place.located, lease, signal)
    await watchThaw(work, pod, clone, signal)
    resumed = clone
    const thawed = await driver.thaw(clone)
    // It runs, whatever comes next: no task may take it for a frozen clone.
    place.put(thawed)
    timeline.mark('thaw')
    return thawed
  }
  /** Returns what has failed instead: the clone alone, or the generation. */
  const attempt = async (stored: Stored): Promise<Clone | 'CloneFailed' | 'Failed'> => {
    try {
      return await resume(stored)
    } catch (error) {
      signal.throwIfAborted()
      if (isAgentError(error, 'NotCalled')) throw error
      failure ??= error
      const { generation } = stored.manifest
      log.warn({ err: error, pod: pod.name, generation }, 'cannot restore and resume a generation')
      if (place.clone === undefined || !isAgentError(error, 'CloneLost', 'ThawFailed', 'ProcessGone'))
        return 'Failed'
      const lost = place.clone
      const hasEnded = lost === resumed && isOfApp(work, pod.uid, error)
      if (hasEnded) place.endedEarly(lost)
      place.put(undefined)
      await driver.discard(lost)
      return hasEnded ? 'Failed' : 'CloneFailed'
    }
  }
  for await (const stored of candidates(work, lease, signal)) {
    if (stored.manifest.restoreHash !== pod.restoreHash) continue
    const until = place.barredUntil(stored.manifest)
    if (until !== undefined) {
      failure ??= endsApp(stored.manifest.generation, until)
      continue
    }
    const wasFrozen = isOf(place.clone, lease) && isSameGeneration(place.clone, stored)
    const first = await attempt(stored)
    // The frozen clone is lost, and the generation is not. The one before would lack what the primary has answered since.
    const outcome = first === 'CloneFailed' && wasFrozen ? await attempt(stored) : first
    if (typeof outcome !== 'string') return outcome
  }
  throw failure ?? new AgentError('RestoreFailed', 'this node has no generation of the slot')
}

const endsApp = (generation: number, until: number): AgentError =>
  new AgentError(
    'EndsApp',
    `generation ${generation} is resumed once more after ${new Date(until).toISOString()}`,
  )

/** False if the app has no part in this end: `hold` did not take it, or the agent could not bring its pages. */
const isOfApp = ({ lazyPages }: Pick<TaskContext, 'lazyPages'>, uid: string, error: unknown): boolean =>
  !isAgentError(error, 'ThawFailed') && !lazyPages.wasLost(uid)

/** Returns the clone of this generation that is frozen here, or restores it. */
async function cloneOf(
  work: OnStageContext,
  { pod, lease }: Pick<TaskOf<'promote'>, 'pod' | 'lease'>,
  place: Place,
  { stored, resumed }: { readonly stored: Stored; readonly resumed: Clone | undefined },
  timeline: Timeline,
  signal: AbortSignal,
): Promise<Clone> {
  const there = place.clone
  if (isOf(there, lease) && isSameGeneration(there, stored)) return there
  // Processes share one copy of a page only in a complete restore; memory that would not fit otherwise gets one.
  const clone = await bringBack(work, place, stored, signal, {
    ...(fits(pod, { memory: memoryOf(stored) }) && { lazily: 'Large' }),
    // A clone that has begun to run may have accepted them.
    ...(resumed === undefined && { clients: 'All' }),
  })
  timeline.mark('restore')
  return clone
}

/** The tmpfs first: to load a generation that only the disk has takes time. */
async function* candidates(
  work: OnStageContext,
  lease: SlotLease,
  signal: AbortSignal,
): AsyncGenerator<Stored> {
  yield* generationsOf(work.store, lease)
  if (work.fromDisk !== undefined) yield* work.fromDisk(lease, signal)
}

/**
 * Fetches newer memory from other nodes if it is worth the time. A hot backup is promoted where its slot's memory is,
 * and time counts: it fetches only if more than one interval would be lost. A pod that was woken or made for the slot
 * may be on a node without any.
 */
async function haveMemory(
  work: OnStageContext,
  { pod, lease }: Pick<TaskOf<'promote'>, 'pod' | 'lease'>,
  place: Place,
  signal: AbortSignal,
): Promise<void> {
  const [newest] = generationsOf(work.store, lease)
  const others = await untilTold(work, lease, newest, signal)
  const isFrozen = isOf(place.clone, lease)
  if (isFrozen || (newest !== undefined && pod.kind === 'hotbackup' && !pod.madeForSlot)) {
    const [best] = others
    if (best === undefined || newest === undefined) return
    if (stepsBehind(toldOf(newest.manifest), best, intervalOf(lease)) === 0) return
  }
  try {
    await fetchNewest(work, lease, others, signal)
  } catch (error) {
    signal.throwIfAborted()
    // Generations here or on the disk may be older, which is better than none.
    work.log.warn({ err: error, pod: pod.name }, 'cannot fetch newer memory of other nodes')
  }
}
