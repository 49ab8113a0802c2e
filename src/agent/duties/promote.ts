import { AgentError, isAgentError } from '../../api/agent-errors.ts'
import { podConditions, servingReasons } from '../../api/pod-contract.ts'
import type { SlotLease } from '../../api/slot-lease.ts'
import { slotName } from '../../checkpoint/manifest.ts'
import type { Stored } from '../../checkpoint/store.ts'
import { isKubeError } from '../../kube/errors.ts'
import { waitUntilAnswering } from '../../probe/answering.ts'
import { stepsBehind } from '../../succession/age.ts'
import type { Clone } from '../driver/memory-driver.ts'
import { bringBack, generationsOf, isSameGeneration } from './bring-back.ts'
import { onStageOf } from './deaths.ts'
import { fits, saysOnStage } from './duties-of.ts'
import type { DutyOf } from './duty.ts'
import { reasonOf } from './failure.ts'
import { fetchNewest, toldOf } from './fetch.ts'
import { memoryOf } from './freeze.ts'
import { targetOf } from './probe-target.ts'
import type { TaskContext } from './task-context.ts'
import { isOf, type Place } from './understudies.ts'
import { watchThaw } from './watch-thaw.ts'

/** The agent reports an app that does not answer for so long after its thaw, and still waits for it. */
const patienceMs = 10_000

/**
 * Puts an understudy on stage with the newest memory of its slot. Does not repeat steps that an earlier try has
 * completed.
 */
export async function promote(
  work: TaskContext,
  duty: DutyOf<'promote'>,
  signal: AbortSignal,
): Promise<void> {
  const { understudies, clock, log } = work
  const { pod, lease } = duty
  const timeline = createTimeline(() => clock.monotonic())
  const place = await understudies.enter(pod, signal)
  timeline.mark('enter')
  const { clone } = place
  // An earlier agent has put it on stage. It may have stopped it since for a handover on which an operator counts, so
  // this one resumes nothing.
  if (isOf(clone, lease) && clone.stage === 'Thawed' && saysOnStage(work.podOf(pod.uid) ?? pod)) {
    arrive(work, duty, place, clone, generationOf(work, lease, clone))
    return
  }
  let stage: Clone
  try {
    stage = await onStage(work, duty, place, timeline, signal)
  } catch (error) {
    signal.throwIfAborted()
    if (isAgentError(error, 'NotCalled')) throw error
    const { message } = reasonOf(error)
    const refusal = {
      type: podConditions.understudy,
      status: 'False',
      reason: 'RestoreFailed',
      message,
    } as const
    await work.patch(pod, refusal, signal)
    work.event(pod, 'Warning', 'RestoreFailed', 'Promote', message)
    throw error
  }

  const answered = new AbortController()
  const late = clock
    .sleep(patienceMs, answered.signal)
    .then(() =>
      work.patch(pod, {
        type: podConditions.serving,
        status: 'False',
        reason: servingReasons.notAnswering,
        message: `resumed with generation ${stage.generation}, but it does not answer`,
      }),
    )
    .catch(() => undefined)
  try {
    await waitUntilAnswering(
      targetOf(work, pod),
      { containers: pod.apps },
      {
        signal,
        clock,
        ...(work.probe === undefined ? {} : { probe: work.probe }),
      },
    )
  } finally {
    answered.abort()
  }
  timeline.mark('answer')
  // Two concurrent writes could arrive in either order.
  await late
  const brought = generationOf(work, lease, stage)
  const { generation, takenAt } = brought?.manifest ?? {}
  const memory = generation === undefined || takenAt === undefined ? undefined : { generation, takenAt }
  const onStageNow = onStageOf(pod, lease.epoch, memory)
  const serving = {
    type: podConditions.serving,
    status: 'True',
    reason: servingReasons.onStage,
    ...onStageNow,
  } as const
  const now = work.podOf(pod.uid)?.serving
  if (now?.status !== 'True' || now.message !== serving.message) await work.patch(pod, serving, signal)
  if (work.podOf(pod.uid)?.understudyState?.reason === 'RestoreFailed')
    await work.patch(
      pod,
      {
        type: podConditions.understudy,
        status: 'False',
        reason: servingReasons.onStage,
        message: serving.message,
      },
      signal,
    )
  timeline.mark('told')
  // Only now: the work after a promotion must not delay its last step.
  arrive(work, duty, place, stage, brought)
  work.metrics.promoted(timeline.seconds())
  log.info(
    {
      pod: `${pod.namespace}/${pod.name}`,
      slot: slotName(lease),
      generation: stage.generation,
      ms: timeline.ms(),
    },
    'slot taken over',
  )
  work.event(
    pod,
    'Normal',
    'OnStage',
    'Promote',
    `took over slot ${lease.name} with generation ${stage.generation}`,
  )
}

/** The generation from which the clone was restored; undefined: this node does not keep it any more. */
const generationOf = ({ store }: TaskContext, lease: SlotLease, clone: Clone): Stored | undefined =>
  generationsOf(store, lease).find(stored => isSameGeneration(clone, stored))

/** Notes that the clone is on stage, and looks after the connections that it inherited. */
function arrive(
  { inheritedConnections }: TaskContext,
  { pod }: DutyOf<'promote'>,
  place: Place,
  clone: Clone,
  brought: Stored | undefined,
): void {
  place.arrive(clone)
  const source = brought?.manifest.source
  const [first] = place.located.containers
  if (source?.ip !== undefined && source.podUid !== pod.uid && first !== undefined)
    inheritedConnections.begin(pod, first.init.pid, {
      ...{ namespace: pod.namespace, name: source.pod, uid: source.podUid, ip: source.ip },
    })
}

/** Thaws the newest generation, and restores it first if it is not frozen here. If that fails, tries the one before. */
async function onStage(
  work: TaskContext,
  { pod, lease, others }: DutyOf<'promote'>,
  place: Place,
  timeline: Timeline,
  signal: AbortSignal,
): Promise<Clone> {
  const { driver, log } = work
  const there = place.clone
  // An earlier agent thawed it and got no further.
  if (isOf(there, lease) && there.stage === 'Thawed') {
    await confirm(work, lease, signal)
    await watchThaw(work, pod, there, signal)
    return driver.thaw(there)
  }
  await haveMemory(work, { pod, lease, others }, place, signal)
  timeline.mark('fetch')
  let failure: unknown = new AgentError('RestoreFailed', 'this node has no generation of the slot')
  for await (const stored of candidates(work, lease, signal)) {
    if (stored.manifest.restoreHash !== pod.restoreHash) continue
    const { generation } = stored.manifest
    try {
      await insist(work, lease, stored, signal)
      const lies = place.clone
      let clone = isOf(lies, lease) && isSameGeneration(lies, stored) ? lies : undefined
      if (clone === undefined) {
        // Processes share one copy of a page only in a complete restore; memory that would not fit otherwise gets one.
        const lazily = fits(pod, { memory: memoryOf(stored) }) ? 'Large' : undefined
        clone = await bringBack(work, place, stored, signal, lazily)
        timeline.mark('restore')
      }
      const { atLeast } = await confirm(work, lease, signal)
      // The operator may have heard of newer memory since this node read the Lease.
      if (isTooOld(stored, atLeast, lease)) throw newerElsewhere(stored)
      timeline.mark('confirm')
      await watchThaw(work, pod, clone, signal)
      const thawed = await driver.thaw(clone)
      // It runs, whatever comes next: no task may take it for a frozen clone.
      place.put(thawed)
      timeline.mark('thaw')
      return thawed
    } catch (error) {
      signal.throwIfAborted()
      if (isAgentError(error, 'NotCalled')) throw error
      failure = error
      log.warn({ err: error, pod: pod.name, generation }, 'cannot restore and resume a generation')
      if (place.clone !== undefined && isAgentError(error, 'CloneLost', 'ThawFailed', 'ProcessGone')) {
        const lost = place.clone
        place.put(undefined)
        await driver.discard(lost)
      }
    }
  }
  throw failure
}

/**
 * Rejects a generation that is too old by the Lease: another node could restore newer memory, which would be lost. The
 * Lease says so until the operator has no other node left. That may have changed since this promotion began, so the API
 * server decides.
 *
 * @throws AgentError NewerElsewhere, KubeError.
 */
async function insist(
  { inquiry }: TaskContext,
  lease: SlotLease,
  stored: Stored,
  signal: AbortSignal,
): Promise<void> {
  if (!isTooOld(stored, lease.atLeast, lease)) return
  if (isTooOld(stored, (await inquiry.lease(lease, signal))?.atLeast, lease)) throw newerElsewhere(stored)
}

const isTooOld = ({ manifest }: Stored, atLeast: SlotLease['atLeast'], lease: SlotLease): boolean =>
  atLeast !== undefined && stepsBehind(toldOf(manifest), atLeast, intervalOf(lease)) > 0

/** While the policy is unknown: as if only the newest memory would do. */
const intervalOf = ({ policy }: SlotLease): number => policy?.intervalMs ?? 0

const newerElsewhere = ({ manifest }: Stored) =>
  new AgentError('NewerElsewhere', `this node has generation ${manifest.generation}`)

const confirmAgainMs = 200

/**
 * Makes sure, by the API server, that the slot still belongs to this pod, and returns its Lease; asks until it gets an
 * answer. A restore takes seconds and a cache can be stale: another pod may have the slot and run by now. This is the
 * last moment to detect that.
 *
 * @throws AgentError NotCalled, the signal's reason.
 */
async function confirm(
  { inquiry, clock, log }: TaskContext,
  lease: SlotLease,
  signal: AbortSignal,
): Promise<SlotLease> {
  for (let isFirst = true; ; isFirst = false) {
    try {
      const now = await inquiry.lease(lease, signal)
      const isCalled =
        now?.holder.uid === lease.holder.uid &&
        now.incarnation === lease.incarnation &&
        now.epoch === lease.epoch
      if (!isCalled) throw new AgentError('NotCalled', slotName(lease))
      return now
    } catch (error) {
      signal.throwIfAborted()
      if (!isKubeError(error)) throw error
      if (isFirst) log.warn({ err: error, slot: slotName(lease) }, 'cannot read the Lease of the slot')
      await clock.sleep(confirmAgainMs, signal)
    }
  }
}

/** The tmpfs first: to load a generation that only the disk has takes time. */
async function* candidates(work: TaskContext, lease: SlotLease, signal: AbortSignal): AsyncGenerator<Stored> {
  yield* generationsOf(work.store, lease)
  if (work.fromDisk !== undefined) yield* work.fromDisk(lease, signal)
}

/**
 * Fetches newer memory from other nodes if it is worth the time. A hot backup is promoted where its slot's memory is,
 * and time counts: it fetches only if more than one interval would be lost. A pod that was woken or made for the slot
 * may be on a node without any.
 */
async function haveMemory(
  work: TaskContext,
  { pod, lease, others }: Pick<DutyOf<'promote'>, 'pod' | 'lease' | 'others'>,
  place: Place,
  signal: AbortSignal,
): Promise<void> {
  const [newest] = generationsOf(work.store, lease)
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

interface Timeline {
  mark(phase: string): void
  ms(): Readonly<Record<string, number>>
  seconds(): Readonly<Record<string, number>>
}

function createTimeline(now: () => number): Timeline {
  const start = now()
  let last = start
  const phases: [string, number][] = []
  return {
    mark(phase) {
      const at = now()
      phases.push([phase, at - last])
      last = at
    },
    ms: () =>
      Object.fromEntries(
        [...phases, ['total', last - start] as const].map(([name, ms]) => [name, Math.round(ms * 10) / 10]),
      ),
    seconds: () =>
      Object.fromEntries(
        [...phases, ['total', last - start] as const].map(([name, ms]) => [name, ms / 1000]),
      ),
  }
}
