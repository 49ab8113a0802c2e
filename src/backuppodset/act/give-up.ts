import { eventReasons } from '../../api/reasons.ts'
import { isKubeError } from '../../kube/errors.ts'
import { microTime } from '../../kube/micro-time.ts'
import { apiVersionOf, events } from '../../kube/resources.ts'
import { writeLease } from '../../slot/act/write-lease.ts'
import type { Action } from '../plan.ts'
import type { ActContext } from './context.ts'

export type GiveUp = Extract<Action, { type: 'giveUp' }>

/**
 * Announces in an event that a slot's memory will be lost, and only then marks its Lease: no action touches the slot
 * before that mark is visible. Bypasses the recorder, which may drop events. The name is deterministic, so that a retry
 * creates no second event.
 * @throws KubeError.
 */
export async function giveUp(context: ActContext, { slot, lease }: GiveUp): Promise<void> {
  const { api, owner, signal, instance } = context
  const { holder, incarnation, givenUpFor } = lease
  const event = {
    apiVersion: apiVersionOf(events),
    kind: events.kind,
    metadata: {
      name: `${owner.name}.${lease.slot}.${incarnation}.${givenUpFor}`,
      namespace: owner.namespace,
    },
    eventTime: microTime(context.now()),
    reportingController: 'understudy-operator',
    reportingInstance: instance,
    type: 'Warning',
    reason: eventReasons.stateWillBeLost,
    action: 'Update',
    note: `slot ${lease.slot} (${holder.name}) will start empty: its memory does not fit pods of the new template, and updateStrategy.allowStateLoss is true`,
    regarding: owner,
  }
  try {
    await api.create(events, event, { namespace: owner.namespace, signal })
  } catch (error) {
    if (!isKubeError(error, 'AlreadyExists')) throw error
  }
  await writeLease(context, lease, slot.resourceVersion, slot.restarts ?? 0)
}
