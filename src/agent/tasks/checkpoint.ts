import { slotName } from '../../checkpoint/manifest.ts'
import type { TaskOf } from '../decide/task.ts'
import { isServing } from '../observe/pod-facts.ts'
import type { Gap } from '../state/pace.ts'
import type { SlotPace } from '../state/progress.ts'
import type { CheckpointWaits } from './checkpoint-waits.ts'
import { pause, policyOf, untilFetched, untilServing, untilWhole } from './checkpoint-waits.ts'
import type { SaveContext } from './save-once.ts'
import { saveOnce } from './save-once.ts'
import type { TaskContext } from './task-context.ts'
import type { WorthSavingContext } from './worth-saving.ts'
import { createLookout, whyUnfit } from './worth-saving.ts'

/** How soon the task looks again at what it could not save, ms. An interval of hours is for memory that has been saved. */
const lookAgainMs = { obstacles: { least: 5_000, most: 60_000 }, answer: { least: 0, most: 5_000 } }
/**
 * How long an answer of the app counts while its task waits for a turn, and how long the app may take to answer within the
 * turn, ms: about the time of a dump, so that an app that does not answer delays other apps no more than a dump does.
 */
const freshMs = 3_000

type CheckpointContext = SaveContext &
  CheckpointWaits &
  WorthSavingContext &
  Pick<TaskContext, 'metrics' | 'saves'>

/** Saves a primary's memory again and again, at the pace that the set asks for and its freezes allow. */
export async function checkpoint(
  work: CheckpointContext,
  task: TaskOf<'checkpoint'>,
  signal: AbortSignal,
  succeeded: () => void,
): Promise<void> {
  const { clock, progress, metrics } = work
  const { lease } = task
  const slot = slotName(lease)
  const isInTheWay = createLookout(work, task)
  /** Ms between checkpoints if holders were still fetching when the next one was due; else 0. */
  let delayedMs = 0
  const pace = work.paces.of(slot)
  const dueByPace = () => pace.dueAt(policyOf(work, task))
  // After a failure the task starts here. It saves at once only if the checkpoint before is long enough ago.
  await pause(work, task, progress.get(slot)?.answeredRequest, dueByPace, signal)
  for (;;) {
    await untilServing(work, task, signal)
    await untilWhole(work, task, signal)
    const policy = policyOf(work, task)
    const startedAt = clock.monotonic()
    const request = work.podOf(task.pod.uid)?.checkpointRequest
    /** After the interval that the set asks for then, within these bounds. */
    const lookAgain = ({ least, most }: { readonly least: number; readonly most: number }) => {
      const dueAt = () => startedAt + Math.min(Math.max(policyOf(work, task).intervalMs, least), most)
      return pause(work, task, request, dueAt, signal)
    }
    // Also before the first dump: a dump of something that cannot be saved fails late, and stops the app for nothing.
    if (await isInTheWay(signal)) {
      await lookAgain(lookAgainMs.obstacles)
      continue
    }
    const turn = await turnOf(work, task, signal)
    if ('problem' in turn) {
      progress.failed(slot, 'NotAnswering', turn.problem)
      await lookAgain(lookAgainMs.answer)
      continue
    }
    const stored = await saveOnce(work, { ...task, policy }, signal, {
      inVain: frozenMs => pace.failed({ startedAt, frozenMs }, policy),
      onDumped: turn.end,
    }).finally(turn.end)
    const { frozenSeconds, skewSeconds, bytes, containers } = stored.manifest
    metrics.saved({
      frozenSeconds,
      criuFrozenSeconds: Math.max(0, ...containers.map(({ frozenMicroseconds }) => frozenMicroseconds)) / 1e6,
      skewSeconds,
      bytes,
      pipelineSeconds: stored.pipelineMs / 1000,
    })
    const pipelineMs = clock.monotonic() - startedAt
    pace.saved({ startedAt, frozenMs: frozenSeconds * 1000, pipelineMs }, policy)
    succeeded()
    progress.succeeded(slot, paceOf(pace.gap(policyOf(work, task)), delayedMs), request)
    await pause(work, task, request, dueByPace, signal)
    const dueMs = clock.monotonic() - startedAt
    await untilFetched(work, task, stored.manifest.generation, signal)
    const spacingMs = clock.monotonic() - startedAt
    // Rounded, because each change of it is written to the report.
    delayedMs = spacingMs > 1.1 * dueMs ? Math.ceil(spacingMs / 1000) * 1000 : 0
  }
}

/**
 * Waits for the task's turn. If all primaries of a node were saved at once, each would be stopped until the processors
 * have saved them all. The wait is a part of the pipeline, so the pace slows down where a node has no time left.
 */
async function turnOf(
  work: WorthSavingContext & Pick<TaskContext, 'node' | 'saves' | 'podOf'>,
  task: TaskOf<'checkpoint'>,
  signal: AbortSignal,
): Promise<{ readonly end: () => void } | { readonly problem: string }> {
  const { node, saves, podOf, clock } = work
  const problem = await whyUnfit(work, task, signal)
  if (problem !== undefined) return { problem }
  const askedAt = clock.monotonic()
  const end = await saves.take({ node, namespace: task.lease.namespace }, signal)
  if (clock.monotonic() - askedAt <= freshMs) return { end }
  try {
    const now = podOf(task.pod.uid)
    const late =
      now === undefined || !isServing(now)
        ? 'its pod is not ready any more'
        : await whyUnfit(work, task, signal, freshMs)
    if (late === undefined) return { end }
    end()
    return { problem: late }
  } catch (error) {
    end()
    throw error
  }
}

/** The pace for the report: seconds to the next checkpoint, and why that is longer than the interval. */
const paceOf = ({ ms, reason }: Gap, delayedMs: number): SlotPace => {
  const told = delayedMs > ms ? 'HoldersBehind' : reason
  return {
    intervalSeconds: Math.round(Math.max(ms, delayedMs)) / 1000,
    ...(told === undefined ? {} : { intervalReason: told }),
  }
}
