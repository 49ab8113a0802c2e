import { slotName } from '../../checkpoint/manifest.ts'
import type { TaskOf } from '../decide/task.ts'
import type { Gap } from '../state/pace.ts'
import type { SlotPace } from '../state/progress.ts'
import type { CheckpointWaits } from './checkpoint-waits.ts'
import { pause, policyOf, untilFetched, untilServing, untilWhole } from './checkpoint-waits.ts'
import type { SaveContext } from './save-once.ts'
import { saveOnce } from './save-once.ts'
import type { TaskContext } from './task-context.ts'
import type { WorthSavingContext } from './worth-saving.ts'
import { createLookout, whyUnfit } from './worth-saving.ts'

const lookAgainMs = 5_000

type CheckpointContext = SaveContext & CheckpointWaits & WorthSavingContext & Pick<TaskContext, 'metrics'>

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
    /** By the interval that the set asks for then, but at least `leastMs` after this checkpoint began. */
    const due = (leastMs: number) => () => startedAt + Math.max(policyOf(work, task).intervalMs, leastMs)
    const request = work.podOf(task.pod.uid)?.checkpointRequest
    // Also before the first dump: a dump of something that cannot be saved fails late, and stops the app for nothing.
    if (await isInTheWay(signal)) {
      await pause(work, task, request, due(lookAgainMs), signal)
      continue
    }
    const problem = await whyUnfit(work, task, signal)
    if (problem !== undefined) {
      progress.failed(slot, 'NotAnswering', problem)
      await pause(work, task, request, due(0), signal)
      continue
    }
    const stored = await saveOnce(work, { ...task, policy }, signal, {
      inVain: frozenMs => pace.failed({ startedAt, frozenMs }, policy),
    })
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

/** The pace for the report: seconds to the next checkpoint, and why that is longer than the interval. */
const paceOf = ({ ms, reason }: Gap, delayedMs: number): SlotPace => {
  const told = delayedMs > ms ? 'HoldersBehind' : reason
  return {
    intervalSeconds: Math.round(Math.max(ms, delayedMs)) / 1000,
    ...(told === undefined ? {} : { intervalReason: told }),
  }
}
