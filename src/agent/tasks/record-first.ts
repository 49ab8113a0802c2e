import { slotName } from '../../checkpoint/manifest.ts'
import { handoverDeadlineMs } from '../../slot/decide/deadlines.ts'
import type { TaskOf } from '../decide/task.ts'
import { type CheckpointWaits, untilArrived } from './checkpoint-waits.ts'
import { type SaveContext, saveOnce } from './save-once.ts'
import type { TaskContext } from './task-context.ts'

type RecordFirstContext = SaveContext & Pick<CheckpointWaits, 'clock' | 'store'> & Pick<TaskContext, 'log'>

/** Below this size of the last generation the stop is short anyway, bytes. */
const leastBytes = 64 * 1024 * 1024

/** After so long, the holders have begun to receive the generation, ms. */
const beginsMs = 250

/** The operator counts the time of a handover from its request on. This part of it is for the holders to receive the generation. */
const share = 1 / 4

/**
 * Saves a large primary before it is stopped for its successor, and lets the kernel record what it writes from then on. So the
 * last save, for which it is stopped, reads and ships only that. A failure costs only the short stop.
 *
 * @throws the signal's reason.
 */
export async function recordFirst(
  work: RecordFirstContext,
  task: TaskOf<'handOver'>,
  signal: AbortSignal,
): Promise<void> {
  const { driver, store, clock, log } = work
  const last = store.latest(task.lease)
  if (!driver.recordsOnRequest() || (last?.manifest.bytes ?? 0) < leastBytes) return
  try {
    const { generation, bytes } = (await saveOnce(work, task, signal, { isRecordRequested: true })).manifest
    log.info({ slot: slotName(task.lease), generation }, 'writes recorded until the handover')
    await clock.sleep(beginsMs, signal)
    // A holder without it would need all memory, while the primary is stopped.
    await untilArrived(work, task, signal, handoverDeadlineMs(bytes) * share)
  } catch (error) {
    signal.throwIfAborted()
    log.warn({ err: error, pod: task.pod.name }, 'cannot record writes before a handover')
  }
}
