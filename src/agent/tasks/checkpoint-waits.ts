import { AgentError } from '../../api/agent-errors.ts'
import type { SlotPolicy } from '../../api/slot-policy.ts'
import { slotName } from '../../checkpoint/manifest.ts'
import type { Clock } from '../../kube/clock.ts'
import type { TaskOf } from '../decide/task.ts'
import { isServing } from '../observe/pod-facts.ts'
import type { Pace } from '../state/pace.ts'
import type { TaskContext } from './task-context.ts'

export type CheckpointWaits = Pick<
  TaskContext,
  | 'understudies'
  | 'lazyPages'
  | 'progress'
  | 'paces'
  | 'requests'
  | 'podOf'
  | 'policyOf'
  | 'isKeptElsewhere'
  | 'fencing'
  | 'store'
  | 'clock'
>

/** The slot's policy as it is now. A change of it does not abort a checkpoint in progress. */
export const policyOf = (
  work: Pick<TaskContext, 'policyOf'>,
  { lease, policy }: TaskOf<'checkpoint'>,
): SlotPolicy => work.policyOf(lease) ?? policy

/**
 * Waits until the app serves: its memory is not worth saving before. The task waits here and does not end: a checkpoint
 * stops the pod, which can make it unready, and the end of the task would abort that checkpoint.
 */
export async function untilServing(
  work: CheckpointWaits,
  { pod, lease }: TaskOf<'checkpoint'>,
  signal: AbortSignal,
): Promise<void> {
  const { requests, podOf, progress } = work
  for (;;) {
    await untilUnfenced(work, { pod, lease }, signal)
    const now = podOf(pod.uid)
    if (now === undefined || isServing(now)) return
    progress.failed(slotName(lease), 'NotAnswering', 'its pod is not ready, so the agent saves nothing of it')
    await requests.wait(pod.uid, signal)
  }
}

/** Waits while the primary is stopped because too few of its voters answer. */
export async function untilUnfenced(
  { fencing, requests, progress }: Pick<TaskContext, 'fencing' | 'requests' | 'progress'>,
  { pod, lease }: Pick<TaskOf<'checkpoint'>, 'pod' | 'lease'>,
  signal: AbortSignal,
): Promise<void> {
  while (fencing.isFenced(pod.uid)) {
    const { code, message } = new AgentError('Fenced')
    progress.failed(slotName(lease), code, message)
    await requests.wait(pod.uid, signal)
  }
}

/** Waits until all memory of the app has arrived: CRIU does not wait for missing pages. */
export async function untilWhole(
  { understudies, lazyPages, progress }: CheckpointWaits,
  { pod, lease }: TaskOf<'checkpoint'>,
  signal: AbortSignal,
): Promise<void> {
  // This also finds a restore of an earlier agent whose pages are still in transit.
  await understudies.enter(pod, signal)
  if (!lazyPages.isComing(pod.uid)) return
  const { code, message } = new AgentError('PagesComing')
  progress.failed(slotName(lease), code, message)
  await lazyPages.whole(pod.uid, signal)
}

/**
 * Waits until the next checkpoint is due, by the slot's policy at that time. A request with another value than
 * `seen` makes it due as soon as the pace can lend one. This includes a request from the time of the previous save,
 * which may have stopped the pod before the request was made.
 */
export async function pause(
  work: CheckpointWaits,
  task: TaskOf<'checkpoint'>,
  seen: string | undefined,
  dueAt: () => number,
  signal: AbortSignal,
): Promise<void> {
  const { clock, requests, podOf, paces } = work
  const { uid } = task.pod
  const pace: Pace = paces.of(slotName(task.lease))
  for (;;) {
    const request = podOf(uid)?.checkpointRequest
    const isAsked = request !== undefined && request !== seen
    const at = isAsked ? Math.min(dueAt(), pace.onRequestAt(policyOf(work, task))) : dueAt()
    const ms = at - clock.monotonic()
    if (ms <= 0) return
    await atMost(clock, ms, either => requests.wait(uid, either), signal)
  }
}

/**
 * Waits for `what`, but at most `ms` milliseconds.
 *
 * @throws the error of `what`, the signal's reason.
 */
async function atMost(
  clock: Clock,
  ms: number,
  what: (signal: AbortSignal) => Promise<unknown>,
  signal: AbortSignal,
): Promise<void> {
  const over = new AbortController()
  const either = AbortSignal.any([signal, over.signal])
  try {
    await Promise.race([clock.sleep(ms, either), what(either)])
  } finally {
    over.abort()
  }
}

/** A holder that takes longer than this for one generation does not delay the next one. */
const fetchMs = 60_000

const reportedMs = 1_000

/**
 * A generation that no holder has yet protects nothing. A holder that stays one generation behind would never catch up:
 * when it asks for the difference to its own generation, the source has already removed that one, and all memory must
 * travel.
 */
export const untilFetched = (
  work: CheckpointWaits,
  task: TaskOf<'checkpoint'>,
  generation: number,
  signal: AbortSignal,
): Promise<void> =>
  atMost(
    work.clock,
    fetchMs,
    either =>
      Promise.race([work.store.unread(task.lease, either), untilOneHasIt(work, task, generation, either)]),
    signal,
  )

/** The operator counts the time of a handover from its request on, so little of that may pass before the stop, ms. */
const inTransitMs = 3_000

/**
 * Waits until no holder receives a generation any more, for a few seconds at most. A stopped primary would stay stopped
 * for so much longer: its last generation is the difference to the one in transit.
 */
export const untilArrived = (
  { clock, store }: Pick<CheckpointWaits, 'clock' | 'store'>,
  { lease }: Pick<TaskOf<'handOver'>, 'lease'>,
  signal: AbortSignal,
): Promise<void> => atMost(clock, inTransitMs, either => store.received(lease, either), signal)

/**
 * A holder that is slow, or pretends to be, must not make all memory older. Once another holder reports this
 * generation, an interval is enough, and the slow holder is left behind.
 */
async function untilOneHasIt(
  work: CheckpointWaits,
  task: TaskOf<'checkpoint'>,
  generation: number,
  signal: AbortSignal,
): Promise<void> {
  await work.clock.sleep(policyOf(work, task).intervalMs, signal)
  while (!work.isKeptElsewhere(task.lease, generation)) await work.clock.sleep(reportedMs, signal)
}
