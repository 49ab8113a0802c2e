import { AgentError } from '../../api/agent-errors.ts'
import type { SlotKey } from '../../api/slot-key.ts'
import type { SlotPolicy } from '../../api/slot-policy.ts'
import { slotName } from '../../checkpoint/manifest.ts'
import type { Draft, Stored } from '../../checkpoint/store.ts'
import { dumpDeadlineMs } from '../../slot/decide/deadlines.ts'
import type { DumpResult, LocatedPod } from '../criu/memory-driver.ts'
import type { TaskOf } from '../decide/task.ts'
import type { PodView } from '../observe/snapshot.ts'
import type { TaskContext } from './task-context.ts'
import { assertVolumesFit } from './volumes-limit.ts'
import { withinLimits } from './watched-draft.ts'

export type SaveContext = Pick<
  TaskContext,
  | 'node'
  | 'driver'
  | 'store'
  | 'understudies'
  | 'deaths'
  | 'progress'
  | 'podOf'
  | 'suspendProbes'
  | 'announce'
  | 'sign'
  | 'measureMemory'
  | 'measureVolumes'
  | 'draftBytes'
  | 'inquiry'
  | 'unhurried'
  | 'clock'
>

const growing = (draft: Draft) => (bytes: number) => {
  draft.grow(bytes)
  return draft.room() - bytes
}

export interface SaveOptions {
  readonly isFinal?: boolean
  /** Lets the kernel record writes from this save on, or uses the record: see `DumpOptions`. */
  readonly isRecordRequested?: boolean
  /** Nothing follows, and no successor may do without it. */
  readonly isLast?: boolean
  readonly inVain?: (frozenMs: number) => void
  /** Stops the pod for longer than the dump does. Called when the dump is prepared: without room, nothing is stopped. */
  readonly stop?: () => Promise<void>
  readonly onDumped?: () => void
  /**
   * Whether the dump of a pod that is known to be deleted counts: then the API server is not asked. Absent: a dump of a pod that is being
   * deleted does not count.
   */
  readonly isValid?: (pod: PodView) => boolean
}

/**
 * How long the API server may take to say whether the pod is being deleted, ms. A primary that stands for its successor waits for
 * the answer. Any other runs again, but no node has its new generation before that: while the API server is away, copies are older by this.
 */
const answersMs = 500

/**
 * A successor may lack one generation, which may be in transit (`stepsBehind`). By a gap the one before counts as too old: clients have
 * been answered since, and nothing may be missing.
 */
const byGap = 2

/** A generation travels as the difference to the one before. Without that one, all memory would travel each time. */
const baseAndNewest = 2

/**
 * Saves a primary's memory now.
 * @param isFinal no generation of this primary follows: it is stopped already.
 * @param inVain called before a rejection if the primary was stopped, with the upper bound of that time in ms.
 * @param onDumped called when the dump has ended, also by a failure; what follows does not use the pod.
 * @throws AgentError, CheckpointError, the signal's reason.
 */
export async function saveOnce(
  work: SaveContext,
  { pod, lease, policy }: Pick<TaskOf<'checkpoint'>, 'pod' | 'lease' | 'policy'>,
  signal: AbortSignal,
  {
    isFinal = false,
    isLast = false,
    isRecordRequested = false,
    inVain,
    stop,
    onDumped,
    isValid,
  }: SaveOptions = {},
): Promise<Stored> {
  const { driver, store, understudies } = work
  const { namespace, name, incarnation, epoch } = lease
  const key = { namespace, name, incarnation }
  const last = store.latest(key)
  const generation = (last?.manifest.generation ?? 0) + (isLast || isFinal ? byGap : 1)
  const { located } = await understudies.enter(pod, signal)
  const draft = await beginDraft(work, located, { key, generation, policy }, signal)
  let stopped: number | undefined
  let isEnding: Promise<boolean> | undefined
  let frozenMs = 0
  try {
    const resumeProbes = work.suspendProbes(pod.uid)
    const stoppedAt = work.clock.monotonic()
    const deadlineMs = dumpDeadlineMs(last?.manifest.bytes)
    const result = await withinLimits(
      draft.dir,
      { volumeBytes: policy.volumeBytes, setAside: growing(draft), measure: work.draftBytes },
      work.clock,
      signal,
      signal =>
        driver.dump(located, draft.dir, {
          deadlineMs,
          ...{ before: last?.manifest, base: last, isRecordRequested },
          takeSpare: draft.takeSpare,
          roomBytes: draft.room(),
          beforeStop: stop,
          onStopped: () => {
            stopped = work.clock.monotonic()
            if (isValid === undefined) isEnding = isKnownToEnd(work, pod, isFinal, signal)
          },
          signal,
        }),
    ).finally(() => {
      resumeProbes()
      onDumped?.()
      if (stopped !== undefined) frozenMs = work.clock.monotonic() - stopped
    })
    const isOver = (await isEnding) === true
    const now = work.podOf(pod.uid)
    if (isOver || now === undefined || !(isValid?.(now) ?? !now.terminating) || work.deaths.dead.has(pod.uid))
      throw new AgentError('DumpVoid')
    const stored = await draft.commit(
      {
        ...{ version: 1, slot: key, epoch, generation },
        source: { pod: pod.name, podUid: pod.uid, node: work.node, ...(pod.ip ? { ip: pod.ip } : {}) },
        ...factsOf(result),
        restoreHash: pod.restoreHash ?? policy.restoreHash,
        ...(isFinal && { final: true }),
      },
      { stoppedAt, pageDigests: result.pageDigests, sign: work.sign, signal },
    )
    work.announce(key)
    const pruned = prune(work, key, policy)
    if (!isFinal && !isLast) await pruned
    return stored
  } catch (error) {
    if (frozenMs > 0) inVain?.(frozenMs)
    await draft.discard()
    // The pod's processes may have changed; the next task locates them again.
    understudies.lookAgain(pod.uid)
    throw error
  }
}

/**
 * Removes older generations. After a last save no caller waits: for 1 GB it takes 0.1 to 0.2 s, and clients wait for the successor. So its
 * failure is handled in any case. A generation that cannot be removed still counts, and the next removal retries.
 */
function prune({ store }: SaveContext, key: SlotKey, { keep }: SlotPolicy): Promise<void> {
  const pruned = store.prune(key, Math.max(keep, baseAndNewest))
  pruned.catch(() => undefined)
  return pruned
}

/** Makes room for a generation, and begins it. @throws CheckpointError StoreFull, AgentError VolumesTooLarge, the signal's reason. */
async function beginDraft(
  work: SaveContext,
  located: LocatedPod,
  { key, generation, policy }: { key: SlotKey; generation: number; policy: SlotPolicy },
  signal: AbortSignal,
): Promise<Draft> {
  const { store, progress, measureMemory } = work
  const last = store.latest(key)
  const known = last !== undefined && progress.get(slotName(key))?.reason !== 'VolumesTooLarge'
  const volumeBytes = await assertVolumesFit(work, located, { limit: policy.volumeBytes, known, signal })
  // The store kept the previous base until now, so that holders could ask for the difference to it.
  await store.prune(key, policy.keep)
  // A dump is about as large as the one before. The size of a first dump is unknown until it has filled the tmpfs.
  const memoryBytes = last === undefined ? await measureMemory?.(located, signal) : undefined
  const expected = memoryBytes === undefined ? {} : { expectedBytes: memoryBytes + (volumeBytes ?? 0) }
  return await store.begin(key, generation, expected)
}

/**
 * Whether the API server says that the pod is being deleted, or gone. The app may have got the signal to end before it was
 * stopped, and this agent's cache may not show the deletion yet: the memory would end in the successor, too. No answer counts as
 * no: then the kubelet is most likely cut off as well, and does not know of a deletion.
 */
async function isKnownToEnd(
  { inquiry, unhurried, clock }: Pick<SaveContext, 'inquiry' | 'unhurried' | 'clock'>,
  pod: PodView,
  isFinal: boolean,
  signal: AbortSignal,
): Promise<boolean> {
  const over = new AbortController()
  const late = AbortSignal.any([signal, over.signal])
  try {
    // An aborted request would cost the connection.
    const asked = (isFinal ? inquiry : unhurried).isThere(pod, signal).then(isThere => !isThere)
    const waits = clock.sleep(answersMs, late).then(() => false)
    return await Promise.race([asked, waits])
  } catch {
    return false
  } finally {
    over.abort()
  }
}

/** The part of a manifest that the dump itself tells. */
const factsOf = ({
  takenAt,
  frozenSeconds,
  skewSeconds,
  criu,
  kernel,
  architecture,
  cpuFeatures,
  containers,
  volumes,
}: DumpResult) => ({
  ...{ takenAt, frozenSeconds, skewSeconds, criu, kernel, architecture, containers, volumes },
  ...(cpuFeatures === undefined ? {} : { cpuFeatures }),
})
