import { isAgentError } from '../../api/agent-errors.ts'
import { podConditions, servingReasons } from '../../api/pod-contract.ts'
import { slotName } from '../../checkpoint/manifest.ts'
import type { Stored } from '../../checkpoint/store.ts'
import { waitUntilAnswering } from '../../probe/answering.ts'
import { answersMs } from '../../slot/decide/deadlines.ts'
import { takeoverSpans } from '../../traces/agent.ts'
import type { Clone } from '../criu/memory-driver.ts'
import type { TaskOf } from '../decide/task.ts'
import { saysOnStage } from '../observe/pod-facts.ts'
import { reasonOf } from '../report/failure.ts'
import { isOf, type Place } from '../state/understudies.ts'
import { onStageOf } from './on-stage-condition.ts'
import { type ProbeTargetContext, targetOf } from './probe-target.ts'
import { generationOf, type OnStageContext, onStage } from './put-on-stage.ts'
import type { TaskContext } from './task-context.ts'
import { createTimeline, type Timeline } from './timeline.ts'

type PromoteContext = OnStageContext &
  ProbeTargetContext &
  Pick<
    TaskContext,
    'node' | 'patch' | 'podOf' | 'event' | 'inheritedConnections' | 'probe' | 'during' | 'trace'
  >

/**
 * Puts an understudy on stage with the newest memory of its slot. Does not repeat steps that an earlier try has
 * completed.
 */
export async function promote(
  work: PromoteContext,
  task: TaskOf<'promote'>,
  signal: AbortSignal,
): Promise<void> {
  const { understudies, clock, log } = work
  const { pod, lease } = task
  const timeline = createTimeline(() => clock.monotonic())
  const place = await understudies.enter(pod, signal)
  timeline.mark('enter')
  const { clone } = place
  // An earlier agent has put it on stage. It may have stopped it since for a handover on which an operator counts, so
  // this one resumes nothing.
  if (isOf(clone, lease) && clone.stage === 'Thawed' && saysOnStage(work.podOf(pod.uid) ?? pod)) {
    arrive(work, task, place, clone, generationOf(work, lease, clone))
    return
  }
  let stage: Clone
  try {
    const staged = onStage(work, task, place, timeline, signal)
    stage = await (work.during?.(staged) ?? staged)
  } catch (error) {
    signal.throwIfAborted()
    trace(work, task, timeline, { failure: reasonOf(error).message })
    if (!isAgentError(error, 'NotCalled')) await tellFailure(work, task, error, signal)
    throw error
  }
  await untilAnswering(work, task, stage, signal)
  timeline.mark('answer')
  // The API server may be away for long, so the app may serve before any condition says so: its end is a death from now on.
  if (work.grants.acceptedOf(lease) !== undefined) work.deaths.guarded(pod)
  const brought = generationOf(work, lease, stage)
  await tellOnStage(work, task, brought, signal)
  timeline.mark('told')
  // Only now: the work after a promotion must not delay its last step.
  arrive(work, task, place, stage, brought)
  work.metrics.promoted(timeline.seconds())
  const { generation } = stage
  trace(work, task, timeline, { generation })
  log.info(
    { pod: `${pod.namespace}/${pod.name}`, slot: slotName(lease), generation, ms: timeline.ms() },
    'slot taken over',
  )
  const note = `took over slot ${lease.name} with generation ${generation}`
  work.event(pod, 'Normal', 'OnStage', 'Promote', note)
}

/** A slot that resumes after a suspension, or begins with a copy, has not changed hands. */
function trace(
  { trace, node, clock }: Pick<PromoteContext, 'trace' | 'node' | 'clock'>,
  { pod, lease }: TaskOf<'promote'>,
  timeline: Timeline,
  end: { readonly generation: number } | { readonly failure: string },
): void {
  if (lease.suspended || lease.cloneOf !== undefined) return
  trace?.(() => {
    const steps = timeline.steps()
    const began = clock.now() - (steps.at(-1)?.to ?? 0)
    return takeoverSpans(node, pod, lease, { ...end, began, steps })
  })
}

async function tellFailure(
  { patch, event }: PromoteContext,
  { pod }: TaskOf<'promote'>,
  error: unknown,
  signal: AbortSignal,
): Promise<void> {
  const { message } = reasonOf(error)
  const reason = 'RestoreFailed'
  await patch(pod, { type: podConditions.understudy, status: 'False', reason, message }, signal)
  event(pod, 'Warning', reason, 'Promote', message)
}

/** Waits for the answer of an app that was thawed; the pod's condition says so if that takes long. */
async function untilAnswering(
  work: PromoteContext,
  { pod }: TaskOf<'promote'>,
  { generation }: Clone,
  signal: AbortSignal,
): Promise<void> {
  const { clock, patch, probe } = work
  const answered = new AbortController()
  const late = clock
    .sleep(answersMs, answered.signal)
    .then(() =>
      patch(pod, {
        type: podConditions.serving,
        status: 'False',
        reason: servingReasons.notAnswering,
        message: `resumed with generation ${generation}, but it does not answer`,
      }),
    )
    .catch(() => undefined)
  const given = probe === undefined ? {} : { probe }
  try {
    await waitUntilAnswering(targetOf(work, pod), { containers: pod.apps }, { signal, clock, ...given })
  } finally {
    answered.abort()
  }
  // Two concurrent writes could arrive in either order.
  await late
}

async function tellOnStage(
  { patch, podOf }: PromoteContext,
  { pod, lease }: TaskOf<'promote'>,
  brought: Stored | undefined,
  signal: AbortSignal,
): Promise<void> {
  const { generation, takenAt } = brought?.manifest ?? {}
  const memory = generation === undefined || takenAt === undefined ? undefined : { generation, takenAt }
  const reason = servingReasons.onStage
  const { message, record } = onStageOf(pod, lease.epoch, memory)
  const now = podOf(pod.uid)?.serving
  if (now?.status !== 'True' || now.message !== message)
    await patch(pod, { type: podConditions.serving, status: 'True', reason, message, record }, signal)
  if (podOf(pod.uid)?.understudyState?.reason === 'RestoreFailed')
    await patch(pod, { type: podConditions.understudy, status: 'False', reason, message }, signal)
}

/** Notes that the clone is on stage, and looks after the connections that it inherited. */
function arrive(
  { inheritedConnections }: PromoteContext,
  { pod }: TaskOf<'promote'>,
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
