import { slotName } from '../../checkpoint/manifest.ts'
import type { Stored } from '../../checkpoint/store.ts'
import { abortAfter } from '../../kube/abort.ts'
import type { TaskOf } from '../decide/task.ts'
import { isWorthRecording, type Recorded } from './record.ts'
import { type SaveContext, type SaveOptions, saveOnce } from './save-once.ts'
import type { TaskContext } from './task-context.ts'

export type AwaitSuccessorContext = SaveContext & Pick<TaskContext, 'standbyGeneration' | 'heldPods' | 'log'>

/** The next save may take longer than the one before by this factor, */
const slack = 2
/** and by this, ms: all of the machine may be busy with the move. */
const slackMs = 2_500

const lookMs = 50

type About = Pick<TaskOf<'checkpoint'>, 'pod' | 'lease' | 'policy'>

export interface LastMoments extends Required<Pick<SaveOptions, 'isValid'>> {
  /** Returns how long the app certainly does not know of its end, ms. */
  readonly leftMs: () => number
}

/**
 * Lets a primary that is being deleted serve on until the pod that is made for its slot stands by, but not for so long that the last
 * save would be late. It stands by if its node has the newest memory: the last save travels as the difference to that. A large primary
 * is saved meanwhile, and the kernel records what it writes from then on.
 *
 * @returns whether the last save reads only what was written since, as in `recordFirst`.
 * @throws the signal's reason.
 */
export async function untilSuccessorStandsBy(
  work: AwaitSuccessorContext,
  about: About,
  moments: LastMoments,
  signal: AbortSignal,
): Promise<Recorded> {
  const { store, clock } = work
  const { leftMs } = moments
  const last = store.latest(about.lease)
  // Nothing tells how long the last save takes.
  if (last === undefined) return 'No'
  // Also if the kernel records writes: a record can turn out to be wrong. Others that were deleted at the same time are saved at the same time.
  const needsMs = slack * 1_000 * last.manifest.frozenSeconds * Math.max(work.heldPods(), 1) + slackMs
  const saved =
    leftMs() > slack * last.pipelineMs + needsMs
      ? await saveRunning(work, about, moments, needsMs, signal)
      : undefined
  const { generation } = (saved ?? last).manifest
  const isBehind = () => (work.standbyGeneration(about.lease) ?? -1) < generation
  while (isBehind() && leftMs() > needsMs) await clock.sleep(Math.min(lookMs, leftMs() - needsMs), signal)
  if (saved === undefined) return 'No'
  return isBehind() ? 'Behind' : 'Recorded'
}

/** @param needsMs time to be left for the last save. */
async function saveRunning(
  work: AwaitSuccessorContext,
  about: About,
  { leftMs, isValid }: LastMoments,
  needsMs: number,
  signal: AbortSignal,
): Promise<Stored | undefined> {
  const { clock, log } = work
  if (!isWorthRecording(work, about)) return undefined
  using late = abortAfter(
    clock,
    leftMs() - needsMs,
    () => new Error('there would be no time for the last save'),
  )
  const within = AbortSignal.any([signal, late.signal])
  try {
    const saved = await saveOnce(work, about, within, { isRecordRequested: true, isValid })
    const { generation } = saved.manifest
    log.info({ slot: slotName(about.lease), generation }, 'writes recorded until the last save')
    return saved
  } catch (error) {
    signal.throwIfAborted()
    log.warn({ err: error, pod: about.pod.name }, 'a deleted primary is stopped for longer than necessary')
    return undefined
  }
}
