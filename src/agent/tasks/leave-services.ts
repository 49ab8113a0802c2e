import { podConditions } from '../../api/pod-contract.ts'
import type { TaskOf } from '../decide/task.ts'
import type { TaskContext } from './task-context.ts'

/** A successor that is frozen serves well within this time, and proxies have synced since, ms. */
const inServicesMs = 2_000

/**
 * Takes a dead primary out of its Services, if the operator has not done so after a while. Until then its heir answers
 * its connections. A heir that is not in the Services by now may be far from that, and the other slots of a Service get its
 * connections instead. The condition of a pod without a gate changes nothing there.
 *
 * @throws KubeError, the signal's reason.
 */
export async function leaveServices(
  { patch, podOf, clock }: Pick<TaskContext, 'patch' | 'podOf' | 'clock'>,
  { pod, version }: TaskOf<'leaveServices'>,
  signal: AbortSignal,
): Promise<void> {
  await clock.sleep(inServicesMs, signal)
  const now = podOf(pod.uid)?.serving
  if (now?.heirAnswers !== true || now.message !== version) return
  const { reason, message, record } = now
  await patch(pod, { type: podConditions.serving, status: 'False', reason, message, record }, signal)
}
