import { KubeError } from '../../kube/errors.ts'
import type { Candidate } from '../decide/snapshot.ts'
import { servingOf } from '../observe/stage.ts'
import type { SlotPort } from './context.ts'
import { readPodWith } from './read-pod.ts'

/**
 * Asks the API server whether no agent has told that a called pod resumes. Before another pod is called, the Lease has told
 * this one to end, so an agent that has not told anything yet will not resume it. The operator also asks before it tells
 * the pod to end, because a pod that has begun to resume gets the time to answer.
 *
 * @throws KubeError Conflict if the pod may run: the cache will show that.
 */
export async function requireNotResumed(
  { urgentApi, owner, signal }: SlotPort,
  { name, uid }: Pick<Candidate, 'name' | 'uid'>,
): Promise<void> {
  const pod = await readPodWith(urgentApi)({ namespace: owner.namespace, name }, signal)
  if (pod?.metadata.uid !== uid) return
  const { serving, resuming } = servingOf(pod)
  if (serving || resuming)
    throw new KubeError('Conflict', `the pod ${name} may run, which our cache does not show yet`)
}
