import { AgentError, isAgentError } from '../../api/agent-errors.ts'
import { slotName } from '../../checkpoint/manifest.ts'
import { isKubeError } from '../../kube/errors.ts'
import { handoverDeadlineMs, handoverSlackMs } from '../../slot/decide/deadlines.ts'
import { lastSaveSpans } from '../../traces/agent.ts'
import type { LocatedPod } from '../criu/memory-driver.ts'
import { isStillCalled } from '../decide/slot-facts.ts'
import type { TaskOf } from '../decide/task.ts'
import type { PodView } from '../observe/snapshot.ts'
import { untilArrived, untilUnfenced } from './checkpoint-waits.ts'
import { endRecord, keeping, type Recorded } from './record.ts'
import { recordFirst } from './record-first.ts'
import { NotWanted } from './runner.ts'
import type { SaveContext } from './save-once.ts'
import { saveOnce } from './save-once.ts'
import type { TaskContext } from './task-context.ts'

type HandOverContext = SaveContext &
  Pick<
    TaskContext,
    | 'sentinel'
    | 'lazyPages'
    | 'fencing'
    | 'requests'
    | 'handoverPauses'
    | 'slotHeldBy'
    | 'successorGeneration'
    | 'isToEnd'
    | 'trace'
    | 'log'
  >

/**
 * Stops a primary for the successor that its Lease names, and saves its memory once more: later changes would be lost.
 * The primary stays stopped until another pod holds the slot, the Lease names no successor any more, or the time is
 * over. In the last two cases it resumes as if nothing had happened, after a timeout with a pause before the next stop.
 * The sentinel keeps the time, too. Once the agent has reported the stop, an operator counts on it, so an agent that
 * exits leaves the primary stopped.
 *
 * @throws AgentError HandoverExpired, Fenced, the errors of a save, the signal's reason.
 */
export async function handOver(
  work: HandOverContext,
  task: TaskOf<'handOver'>,
  signal: AbortSignal,
): Promise<void> {
  const { sentinel, understudies } = work
  const { pod } = task
  const name = handoverStop(pod)
  // If an earlier agent has left it stopped, the last generation may be the one in transit.
  const isStopped = await isThere(sentinel, name)
  if (!isStopped) await untilArrived(work, task, signal)
  await untilUnfenced(work, task, signal)
  const { located } = await understudies.enter(pod, signal)
  // Pages in transit arrive sooner while the app runs.
  await work.lazyPages.whole(pod.uid, signal)
  try {
    const recorded = isStopped ? 'No' : await recordFirst(work, task, signal)
    await standStill(work, task, { located, recorded, isStopped }, signal)
  } finally {
    await endRecord(work, pod)
  }
}

/** Stops the primary, saves it, and keeps it stopped. */
async function standStill(
  work: HandOverContext,
  task: TaskOf<'handOver'>,
  {
    located,
    recorded,
    isStopped,
  }: { readonly located: LocatedPod; readonly recorded: Recorded; readonly isStopped: boolean },
  signal: AbortSignal,
): Promise<void> {
  const { sentinel, store, progress, handoverPauses, clock, log } = work
  const { pod, lease } = task
  const slot = slotName(lease)
  const name = handoverStop(pod)
  const deadlineMs = handoverDeadlineMs(store.latest(lease)?.manifest.bytes)
  let isPromised = false
  const resumeProbes = work.suspendProbes(pod.uid)
  let stoppedAt: number | undefined
  let isOfEarlierAgent = false
  const stoodMs = () => (stoppedAt === undefined ? 0 : clock.monotonic() - stoppedAt)
  const leftMs = () => Math.max(deadlineMs - stoodMs(), 0)
  const expired = () => new AgentError('HandoverExpired', `${Math.round(deadlineMs / 1000)} s`)
  // A stop of its own, because the dump's stop ends with the dump. The dump leaves stopped processes as they are.
  const cgroups = located.containers.flatMap(container => container.cgroups)
  const stop = async () => {
    stoppedAt = clock.monotonic()
    // An earlier agent may have left it stopped.
    isOfEarlierAgent = await sentinel.keep(name, deadlineMs + handoverSlackMs, signal)
    if (!isOfEarlierAgent) await sentinel.stop({ name, deadlineMs: deadlineMs + handoverSlackMs, cgroups })
  }
  const policy = keeping(task.policy, recorded)
  try {
    // A stop of an earlier agent could end before the dump is prepared, and an operator may count on it.
    if (isStopped) await stop()
    isPromised = isOfEarlierAgent
    const stored = await saveOnce(work, { pod, lease, policy }, signal, {
      ...{ isFinal: true, isRecordRequested: recorded !== 'No', ...(!isStopped && { stop }) },
    })
    isPromised = await sentinel.keep(name, leftMs() + handoverSlackMs, signal)
    if (!isPromised) throw expired()
    progress.standing(slot, {
      ...{ seconds: leftMs() / 1000, handover: lease.handovers },
      stoodSeconds: isOfEarlierAgent ? undefined : stoodMs() / 1000,
    })
    const { generation, bytes, frozenSeconds } = stored.manifest
    work.trace?.(() => {
      const to = clock.now()
      const from = to - stoodMs()
      return lastSaveSpans(work.node, pod, lease, { from, to, generation, bytes, frozenSeconds })
    })
    log.info(
      { pod: pod.name, slot, generation, successor: lease.handover },
      'primary stopped for its successor',
    )
    await clock.sleep(leftMs(), signal)
    throw expired()
  } catch (error) {
    // A primary that was fenced first has not been stopped for its successor.
    if (!signal.aborted && !isAgentError(error, 'Fenced')) handoverPauses.begin(task, stoodMs(), deadlineMs)
    throw error
  } finally {
    // In any case: a stop may be refused, a resume may get lost, and no other agent can resume the probes.
    resumeProbes()
    const endsWithAgent = signal.aborted && !(signal.reason instanceof NotWanted)
    if (!isPromised || !endsWithAgent) await takeBack(work, task, isPromised)
  }
}

/**
 * Resumes a primary on whose stop an operator may have counted.
 * @param isPromised its stop was reported: another pod may have the slot, which no watch has told yet.
 */
async function takeBack(work: HandOverContext, task: TaskOf<'handOver'>, isPromised: boolean): Promise<void> {
  const { pod, lease } = task
  const slot = slotName(lease)
  work.progress.standing(slot, undefined)
  // Another pod that the Lease names may run already: then the primary stays stopped until the task `stopPrimary` ends
  // it. A primary that must end first stays stopped, too: changes that it makes now would be lost.
  if (work.slotHeldBy(pod.uid) !== slot || work.isToEnd(pod.uid)) return
  if (!isPromised || (await isStillIts(work, task))) await letGo(work, handoverStop(pod))
}

/** Without an answer of the API server the sentinel resumes the primary at the end of its stop, or its voters do not. */
async function isStillIts(
  { inquiry, clock }: Pick<TaskContext, 'inquiry' | 'clock'>,
  { pod, lease }: TaskOf<'handOver'>,
): Promise<boolean> {
  const { signal } = new AbortController()
  const until = clock.monotonic() + handoverSlackMs
  while (clock.monotonic() < until)
    try {
      return isStillCalled(pod.uid, lease, await inquiry.lease(lease, signal))
    } catch (error) {
      if (!isKubeError(error)) throw error
      await clock.sleep(askAgainMs)
    }
  return false
}

const askAgainMs = 250

/**
 * Resumes a primary that an earlier agent has left stopped, and that is not to be handed over any more. Asks the API
 * server first: the primary must not resume if another pod got its slot.
 *
 * @throws KubeError, AgentError SentinelUnavailable, SentinelLost, or the signal's reason.
 */
export async function letEarlierGo(
  work: Pick<TaskContext, 'sentinel' | 'inquiry' | 'clock' | 'log'>,
  { pod, lease }: TaskOf<'watchPrimary'>,
  signal: AbortSignal,
): Promise<void> {
  if (lease.handover !== undefined) return
  const name = handoverStop(pod)
  if (!(await isThere(work.sentinel, name))) return
  const now = await work.inquiry.lease(lease, signal)
  if (isStillCalled(pod.uid, lease, now) && now?.handover === undefined) await letGo(work, name)
}

const isThere = async (sentinel: Pick<TaskContext['sentinel'], 'isDone'>, stop: string): Promise<boolean> => {
  try {
    await sentinel.isDone(stop)
    return true
  } catch (error) {
    if (isAgentError(error, 'SentinelRefused')) return false
    throw error
  }
}

/** The name of the stop of a primary that hands its slot over. */
export const handoverStop = ({ uid }: Pick<PodView, 'uid'>): string => `handover-${uid}`

/**
 * A process that was never stopped needs no resume. A stop that was reported is kept below the next sentinel, so this waits a moment for that
 * one.
 */
async function letGo(
  { sentinel, clock, log }: Pick<TaskContext, 'sentinel' | 'clock' | 'log'>,
  name: string,
): Promise<void> {
  for (const until = clock.monotonic() + handoverSlackMs; ; await clock.sleep(askAgainMs))
    try {
      await sentinel.continue(name)
      return
    } catch (error) {
      if (!isAgentError(error, 'SentinelRefused', 'SentinelLost', 'SentinelUnavailable')) throw error
      if (!isAgentError(error, 'SentinelRefused') && clock.monotonic() < until) continue
      log.info({ stop: name, problem: error.message }, 'nothing to resume')
      return
    }
}
