import { AgentError } from '../../api/agent-errors.ts'
import type { SlotPolicy } from '../../api/slot-policy.ts'
import { slotName } from '../../checkpoint/manifest.ts'
import type { Draft, Stored } from '../../checkpoint/store.ts'
import type { Clock } from '../../kube/clock.ts'
import { parseProbe } from '../../probe/handler.ts'
import { probe as runProbe } from '../../probe/probe.ts'
import { dumpDeadlineMs } from '../../succession/deadlines.ts'
import { describeObstacles } from '../obstacles/obstacle.ts'
import { isServing } from './duties-of.ts'
import type { DutyOf } from './duty.ts'
import type { Gap, Pace } from './pace.ts'
import { targetOf } from './probe-target.ts'
import type { SlotPace } from './progress.ts'
import type { TaskContext } from './task-context.ts'
import { assertVolumesFit } from './volumes-limit.ts'
import { withinLimits } from './watched-draft.ts'

/** Saves a primary's memory again and again, at the pace that the set asks for and its freezes allow. */
export async function checkpoint(
  work: TaskContext,
  duty: DutyOf<'checkpoint'>,
  signal: AbortSignal,
  succeeded: () => void,
): Promise<void> {
  const { clock, progress, metrics } = work
  const { lease } = duty
  const slot = slotName(lease)
  const isInTheWay = createLookout(work, duty)
  /** Ms between checkpoints if holders were still fetching when the next one was due; else 0. */
  let delayedMs = 0
  const pace = work.paces.of(slot)
  const dueByPace = () => pace.dueAt(policyOf(work, duty))
  // After a failure the task starts here. It saves at once only if the checkpoint before is long enough ago.
  await pause(work, duty, progress.get(slot)?.answeredRequest, dueByPace, signal)
  for (;;) {
    await untilServing(work, duty, signal)
    await untilWhole(work, duty, signal)
    const policy = policyOf(work, duty)
    const startedAt = clock.monotonic()
    /** By the interval that the set asks for then, but at least `leastMs` after this checkpoint began. */
    const due = (leastMs: number) => () => startedAt + Math.max(policyOf(work, duty).intervalMs, leastMs)
    const request = work.podOf(duty.pod.uid)?.checkpointRequest
    // Also before the first dump: a dump of something that cannot be saved fails late, and stops the app for nothing.
    if (await isInTheWay(signal)) {
      await pause(work, duty, request, due(lookAgainMs), signal)
      continue
    }
    const problem = await whyUnfit(work, duty, signal)
    if (problem !== undefined) {
      progress.failed(slot, 'NotAnswering', problem)
      await pause(work, duty, request, due(0), signal)
      continue
    }
    const stored = await saveOnce(work, { ...duty, policy }, signal, {
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
    progress.succeeded(slot, paceOf(pace.gap(policyOf(work, duty)), delayedMs), request)
    await pause(work, duty, request, dueByPace, signal)
    const dueMs = clock.monotonic() - startedAt
    await untilFetched(work, duty, stored.manifest.generation, signal)
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

/** The slot's policy as it is now. A change of it does not abort a checkpoint in progress. */
const policyOf = (work: TaskContext, { lease, policy }: DutyOf<'checkpoint'>): SlotPolicy =>
  work.policyOf(lease) ?? policy

/**
 * Waits until the app serves: its memory is not worth saving before. The task waits here and does not end: a checkpoint
 * stops the pod, which can make it unready, and the end of the task would abort that checkpoint.
 */
async function untilServing(
  { requests, podOf, progress }: TaskContext,
  { pod, lease }: DutyOf<'checkpoint'>,
  signal: AbortSignal,
): Promise<void> {
  for (;;) {
    const now = podOf(pod.uid)
    if (now === undefined || isServing(now)) return
    progress.failed(slotName(lease), 'NotAnswering', 'its pod is not ready, so the agent saves nothing of it')
    await requests.wait(pod.uid, signal)
  }
}

/** Waits until all memory of the app has arrived: CRIU does not wait for missing pages. */
async function untilWhole(
  { understudies, lazyPages, progress }: TaskContext,
  { pod, lease }: DutyOf<'checkpoint'>,
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
async function pause(
  work: TaskContext,
  duty: DutyOf<'checkpoint'>,
  seen: string | undefined,
  dueAt: () => number,
  signal: AbortSignal,
): Promise<void> {
  const { clock, requests, podOf, paces } = work
  const { uid } = duty.pod
  const pace: Pace = paces.of(slotName(duty.lease))
  for (;;) {
    const request = podOf(uid)?.checkpointRequest
    const isAsked = request !== undefined && request !== seen
    const at = isAsked ? Math.min(dueAt(), pace.onRequestAt(policyOf(work, duty))) : dueAt()
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
const untilFetched = (
  work: TaskContext,
  duty: DutyOf<'checkpoint'>,
  generation: number,
  signal: AbortSignal,
): Promise<void> =>
  atMost(
    work.clock,
    fetchMs,
    either =>
      Promise.race([work.store.unread(duty.lease, either), untilOneHasIt(work, duty, generation, either)]),
    signal,
  )

/**
 * A holder that is slow, or pretends to be, must not make all memory older. Once another holder reports this
 * generation, an interval is enough, and the slow holder is left behind.
 */
async function untilOneHasIt(
  work: TaskContext,
  duty: DutyOf<'checkpoint'>,
  generation: number,
  signal: AbortSignal,
): Promise<void> {
  await work.clock.sleep(policyOf(work, duty).intervalMs, signal)
  while (!work.isKeptElsewhere(duty.lease, generation)) await work.clock.sleep(reportedMs, signal)
}

const lookAgainMs = 5_000
/**
 * Most obstacles that appear later make the dump fail. Some only lose data, so the task looks for them now and then.
 */
const lookEveryMs = 60_000

/** Returns a check for things in the pod that cannot be saved. It reports them always, and in an event once. */
function createLookout(work: TaskContext, { pod, lease }: DutyOf<'checkpoint'>) {
  const { clock, progress, understudies, obstacles, event } = work
  let lookedAt = Number.NEGATIVE_INFINITY
  let told = ''
  return async (signal: AbortSignal): Promise<boolean> => {
    if (clock.monotonic() - lookedAt < lookEveryMs) return false
    const { located } = await understudies.enter(pod, signal)
    const found = await obstacles(located, signal)
    if (found.length === 0) {
      lookedAt = clock.monotonic()
      return false
    }
    const { code, message } = new AgentError('Unsupported', describeObstacles(found))
    progress.failed(slotName(lease), code, message)
    if (told !== message) event(pod, 'Warning', code, 'Checkpoint', message)
    told = message
    return true
  }
}

/**
 * Why the memory of this moment is not worth saving; undefined: it is. The kubelet reports unreadiness seconds late,
 * and a checkpoint taken until then would contain the fault. So the agent probes the app before each checkpoint.
 */
async function whyUnfit(
  work: TaskContext,
  { pod }: DutyOf<'checkpoint'>,
  signal: AbortSignal,
): Promise<string | undefined> {
  const { clock, probe = runProbe } = work
  const target = targetOf(work, pod)
  for (const container of pod.apps) {
    const asked = container.readinessProbe ?? container.livenessProbe
    const parsed = asked && parseProbe(asked, container)
    if (typeof parsed !== 'object') continue
    const { handler, timing } = parsed
    const options = { timeoutMs: timing.timeoutMs, signal, clock }
    const result = await probe(handler, target, options)
    if (result.outcome === 'failure') return `container ${container.name}: ${result.message}`
  }
  return undefined
}

const growing = (draft: Draft) => (bytes: number) => {
  draft.grow(bytes)
  return draft.room() - bytes
}

/** A generation travels as the difference to the one before. Without that one, all memory would travel each time. */
const baseAndNewest = 2

/**
 * Saves a primary's memory now.
 * @param isFinal no generation of this primary follows: it is stopped already.
 * @param inVain called before a rejection if the primary was stopped, with the upper bound of that time in ms.
 * @throws AgentError, CheckpointError, the signal's reason.
 */
export async function saveOnce(
  work: TaskContext,
  { pod, lease, policy }: Pick<DutyOf<'checkpoint'>, 'pod' | 'lease' | 'policy'>,
  signal: AbortSignal,
  { isFinal = false, inVain }: { isFinal?: boolean; inVain?: (frozenMs: number) => void } = {},
): Promise<Stored> {
  const { driver, store, understudies } = work
  const { namespace, name, incarnation, epoch } = lease
  const key = { namespace, name, incarnation }
  const last = store.latest(key)
  const generation = (last?.manifest.generation ?? 0) + 1
  const { located } = await understudies.enter(pod, signal)
  const limit = policy.volumeBytes
  const known = last !== undefined && work.progress.get(slotName(key))?.reason !== 'VolumesTooLarge'
  const volumeBytes = await assertVolumesFit(work, located, { limit, known, signal })
  // Makes room. The store kept the previous base until now, so that holders could ask for the difference to it.
  await store.prune(key, policy.keep)
  // A dump is about as large as the one before. The size of a first dump is unknown until it has filled the tmpfs.
  const memoryBytes = last === undefined ? await work.measureMemory?.(located, signal) : undefined
  const expected = memoryBytes === undefined ? {} : { expectedBytes: memoryBytes + (volumeBytes ?? 0) }
  const draft = await store.begin(key, generation, expected)
  const resumeProbes = work.suspendProbes(pod.uid)
  let stopped: number | undefined
  let frozenMs = 0
  try {
    const stoppedAt = work.clock.monotonic()
    const deadlineMs = dumpDeadlineMs(last?.manifest.bytes)
    const result = await withinLimits(
      draft.dir,
      { volumeBytes: limit, setAside: growing(draft), measure: work.draftBytes },
      work.clock,
      signal,
      signal =>
        driver.dump(located, draft.dir, {
          deadlineMs,
          before: last?.manifest,
          roomBytes: draft.room(),
          onStopped: () => {
            stopped = work.clock.monotonic()
          },
          signal,
        }),
    ).finally(() => {
      resumeProbes()
      if (stopped !== undefined) frozenMs = work.clock.monotonic() - stopped
    })
    const now = work.podOf(pod.uid)
    if (now === undefined || now.terminating || work.deaths.dead.has(pod.uid))
      throw new AgentError('DumpVoid')
    const { takenAt, frozenSeconds, skewSeconds, criu, kernel, architecture, containers, volumes } = result
    const stored = await draft.commit(
      {
        version: 1,
        slot: key,
        epoch,
        generation,
        source: { pod: pod.name, podUid: pod.uid, node: work.node, ...(pod.ip ? { ip: pod.ip } : {}) },
        takenAt,
        frozenSeconds,
        skewSeconds,
        criu,
        kernel,
        architecture,
        ...(result.cpuFeatures === undefined ? {} : { cpuFeatures: result.cpuFeatures }),
        restoreHash: pod.restoreHash ?? policy.restoreHash,
        containers,
        volumes,
        ...(isFinal && { final: true }),
      },
      { stoppedAt, sign: work.sign, signal },
    )
    work.announce(key)
    await store.prune(key, Math.max(policy.keep, baseAndNewest))
    return stored
  } catch (error) {
    if (frozenMs > 0) inVain?.(frozenMs)
    await draft.discard()
    // The pod's processes may have changed; the next task locates them again.
    understudies.lookAgain(pod.uid)
    throw error
  }
}
