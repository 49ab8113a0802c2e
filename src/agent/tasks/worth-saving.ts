import { AgentError } from '../../api/agent-errors.ts'
import { slotName } from '../../checkpoint/manifest.ts'
import { parseProbe } from '../../probe/handler.ts'
import { probe as runProbe } from '../../probe/probe.ts'
import type { TaskOf } from '../decide/task.ts'
import { describeObstacles } from '../preflight/obstacles/obstacle.ts'
import type { ProbeTargetContext } from './probe-target.ts'
import { targetOf } from './probe-target.ts'
import type { TaskContext } from './task-context.ts'

export type WorthSavingContext = ProbeTargetContext &
  Pick<TaskContext, 'progress' | 'obstacles' | 'event' | 'probe' | 'clock'>

export type UnfitContext = Pick<WorthSavingContext, keyof ProbeTargetContext | 'probe' | 'clock'>

/**
 * Most obstacles that appear later make the dump fail. Some only lose data, so the task looks for them now and then.
 */
const lookEveryMs = 60_000

/** Returns a check for things in the pod that cannot be saved. It reports them always, and in an event once. */
export function createLookout(work: WorthSavingContext, { pod, lease }: TaskOf<'checkpoint'>) {
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
 *
 * @param mostMs limits the time-out of each probe.
 */
export async function whyUnfit(
  work: UnfitContext,
  { pod }: Pick<TaskOf<'checkpoint'>, 'pod'>,
  signal: AbortSignal,
  mostMs = Number.POSITIVE_INFINITY,
): Promise<string | undefined> {
  const { clock, probe = runProbe } = work
  const target = targetOf(work, pod)
  for (const container of pod.apps) {
    const asked = container.readinessProbe ?? container.livenessProbe
    const parsed = asked && parseProbe(asked, container)
    if (typeof parsed !== 'object') continue
    const { handler, timing } = parsed
    const options = { timeoutMs: Math.min(timing.timeoutMs, mostMs), signal, clock }
    const result = await probe(handler, target, options)
    if (result.outcome === 'failure') return `container ${container.name}: ${result.message}`
  }
  return undefined
}
