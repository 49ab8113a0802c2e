import { grantOverAnnotation, grantsOver } from '../../api/grant.ts'
import type { Pod } from '../../kube/resources.ts'
import type { SlotActionOf } from '../decide/actions.ts'
import { servingOf } from '../observe/stage.ts'
import type { PodPort } from './context.ts'
import { patchPod } from './write-pod.ts'

/**
 * Ends a grant without its agents. Their word is a condition of the same pod, so the API server puts the two writes in an order: the
 * version of the pod is a precondition here, and the agent of the heir reads this annotation in the answer to its own write.
 *
 * @throws PodChangedError if the pod may run, KubeError.
 */
export const endGrant = (
  context: PodPort,
  { pod, incarnation, number }: SlotActionOf<'endGrant'>,
): Promise<Pod> =>
  patchPod(
    context,
    pod,
    // Another operator may have ended later ones since.
    now => isUntold(now) && grantsOver(now.metadata.annotations, incarnation) < number,
    { annotations: { [grantOverAnnotation(incarnation)]: String(number) } },
  )

function isUntold(pod: Pod): boolean {
  const { serving, resuming } = servingOf(pod)
  return !serving && !resuming
}
