import { slotName } from '../../checkpoint/manifest.ts'
import { abortAfter } from '../../kube/abort.ts'
import { handoverDeadlineMs } from '../../slot/decide/deadlines.ts'
import type { TaskOf } from '../decide/task.ts'
import { isWorthRecording, type Recorded } from './record.ts'
import { type SaveContext, saveOnce } from './save-once.ts'
import type { TaskContext } from './task-context.ts'

type RecordFirstContext = SaveContext & Pick<TaskContext, 'successorGeneration' | 'log'>

/** The operator counts the time of a handover from its request on. This part of it may pass before the stop. */
const share = 1 / 4

const lookMs = 50

/** For how long the node of the successor may not have seen that the Lease names it, ms. */
const unknownMs = 3_000

/**
 * Saves a large primary before it is stopped for its successor, and lets the kernel record what it writes from then on. Waits
 * until the successor has that memory: a restore of it would hold up that of the last generation. A failure costs only the
 * short stop.
 *
 * @throws the signal's reason.
 */
export async function recordFirst(
  work: RecordFirstContext,
  { pod, lease, policy }: TaskOf<'handOver'>,
  signal: AbortSignal,
): Promise<Recorded> {
  const { store, clock, log } = work
  const last = store.latest(lease)
  if (last === undefined || !isWorthRecording(work, { pod, lease })) return 'No'
  let recorded: Recorded = 'No'
  const limitMs = handoverDeadlineMs(last.manifest.bytes) * share
  using late = abortAfter(clock, limitMs, () => new Error(`not within ${Math.round(limitMs)} ms`))
  const within = AbortSignal.any([signal, late.signal])
  try {
    // It never says so if its agent is of an earlier version. This node would not learn when it has what is saved now.
    const knownBy = clock.monotonic() + unknownMs
    while (work.successorGeneration(lease) === undefined) {
      if (clock.monotonic() > knownBy) return 'No'
      await clock.sleep(lookMs, within)
    }
    const { manifest } = await saveOnce(work, { pod, lease, policy }, within, { isRecordRequested: true })
    recorded = 'Behind'
    log.info({ slot: slotName(lease), generation: manifest.generation }, 'writes recorded until the handover')
    while ((work.successorGeneration(lease) ?? 0) < manifest.generation) await clock.sleep(lookMs, within)
    return 'Recorded'
  } catch (error) {
    signal.throwIfAborted()
    log.warn({ err: error, pod: pod.name, recorded }, 'a primary is stopped for longer than necessary')
    return recorded
  }
}
