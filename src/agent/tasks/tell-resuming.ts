import { AgentError } from '../../api/agent-errors.ts'
import { grantsOver } from '../../api/grant.ts'
import { podConditions, servingReasons } from '../../api/pod-contract.ts'
import type { SlotLease } from '../../api/slot-lease.ts'
import { isKubeError } from '../../kube/errors.ts'
import type { PodView } from '../observe/snapshot.ts'
import type { WrittenPod } from '../report/conditions.ts'
import { confirmAgainMs } from './lease-check.ts'
import type { TaskContext } from './task-context.ts'

/**
 * Tells the API server that a called pod is about to run. The agent does this before it reads the Lease for the last time,
 * and the operator reads the pod after it has written into the Lease that the pod is to end. So either the operator learns
 * that the pod may run, or the agent learns that it must not, although each of them may be away for any time.
 *
 * A heir with an accepted grant runs without that: the operator calls no other pod before this agent has said that the
 * grant is over. If the grant is to be announced, the operator can end it alone, on the pod: the answer to this write shows whether it
 * has.
 *
 * @returns whether a grant gives the pod the slot, whatever the Lease says.
 * @throws AgentError NotCalled if the pod is gone, or its grant is over; the signal's reason.
 */
export async function tellResuming(
  work: Pick<TaskContext, 'patch' | 'podOf' | 'grants' | 'clock' | 'log'>,
  pod: PodView,
  lease: SlotLease,
  signal: AbortSignal,
): Promise<boolean> {
  const { grants, log } = work
  const accepted = grants.acceptedOf(lease)
  if (accepted !== undefined && !accepted.isAnnounced) return true
  const told = {
    status: 'False',
    reason: servingReasons.resuming,
    message: `resumes as primary of slot ${lease.name} in epoch ${lease.epoch}`,
  } as const
  let written = await tell(work, pod, { type: podConditions.serving, ...told }, signal)
  // After a failure nothing runs, whatever the pod has said before: the operator would call another pod without the end of this one.
  if (work.podOf(pod.uid)?.understudyState?.reason === 'RestoreFailed')
    written = await tell(work, pod, { type: podConditions.understudy, ...told }, signal)
  if (accepted === undefined || written.annotations === undefined) return false
  const { number } = accepted
  if (grantsOver(written.annotations, lease.incarnation) < number) return true
  log.warn({ pod: pod.name, slot: lease.name, number }, 'the operator has ended an accepted grant')
  // Taken back first: the record ends this task, and a cache that does not show the write yet hides it from every other one.
  const message = 'the operator has ended its grant'
  const offStage = { status: 'False', reason: servingReasons.offStage, message } as const
  await tell(work, pod, { type: podConditions.serving, ...offStage }, signal)
  const record = grants.acceptedOf(lease)
  if (record !== undefined) await grants.write({ ...record, answer: 'Refused' })
  throw new AgentError('NotCalled', pod.name)
}

async function tell(
  { patch, clock, log }: Pick<TaskContext, 'patch' | 'clock' | 'log'>,
  pod: PodView,
  condition: Parameters<TaskContext['patch']>[1],
  signal: AbortSignal,
): Promise<WrittenPod> {
  for (let isFirst = true; ; isFirst = false) {
    try {
      const written = await patch(pod, condition, signal)
      if (written !== undefined) return written
      throw new AgentError('NotCalled', pod.name)
    } catch (error) {
      signal.throwIfAborted()
      if (!isKubeError(error)) throw error
      if (isFirst) log.warn({ err: error, pod: pod.name }, 'cannot tell that a pod resumes')
      await clock.sleep(confirmAgainMs, signal)
    }
  }
}
