import type { NumberedSlotLease } from '../../api/numbered-slot.ts'
import { isUnderstudy } from '../../api/pod-contract.ts'
import { KubeError } from '../../kube/errors.ts'
import { isReady } from '../../kube/ready.ts'
import type { Pod } from '../../kube/resources.ts'
import { replacedIn } from '../observe/slot-primary.ts'
import { servingOf, stageOf } from '../observe/stage.ts'
import type { SlotPort } from './context.ts'
import { readPodWith } from './read-pod.ts'

/**
 * Asks the API server whether a primary that is to be replaced for being unready is still unready. With a watch that
 * hangs, a momentary unreadiness from long ago would seem to have lasted until now.
 *
 * @param of the incarnation that the pod should have: with other containers it is not well, however ready they are.
 * @throws KubeError Conflict if it is ready: the cache will show that.
 */
export async function requireUnready(
  { urgentApi, owner, signal }: SlotPort,
  name: string,
  of?: { readonly lease: NumberedSlotLease; readonly restarts: number },
): Promise<void> {
  const pod = await readPodWith(urgentApi)({ namespace: owner.namespace, name }, signal)
  const isOther = (each: Pod) =>
    of !== undefined && replacedIn(each, stageOf(each), of.lease, of.restarts) !== 'No'
  if (pod !== undefined && isWell(pod) && !isOther(pod))
    throw new KubeError('Conflict', `the pod ${name} is ready, which our cache does not show yet`)
}

const isWell = (pod: Pod): boolean =>
  pod.metadata.deletionTimestamp === undefined &&
  isReady(pod) &&
  servingOf(pod).death === undefined &&
  (!isUnderstudy(pod) || servingOf(pod).serving)
