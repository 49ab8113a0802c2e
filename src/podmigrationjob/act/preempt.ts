/** The acts for preemption: jobs for the pods that give way, and the pod that waits for their room. */
import { type JobDeleteOptions, podMigrationJobs, roomGate } from '../../api/pod-migration-job.ts'
import type { Api } from '../../kube/api-types.ts'
import { isKubeError } from '../../kube/errors.ts'
import { ownerReference } from '../../kube/owner.ts'
import { apiVersionOf, pods } from '../../kube/resources.ts'
import { preemptionNameOf } from '../decide/preemption.ts'
import type { ReservationAction } from '../decide/reservation.ts'
import type { Action } from '../decide/view.ts'

type Of<Type extends ReservationAction['type']> = Extract<ReservationAction, { type: Type }>

/** Creates the job for a pod that gives way. Its pod goes with the grace period that the other job wants. */
export async function preempt(
  api: Pick<Api, 'create'>,
  { view, victim, ttlMs }: Extract<Action, { type: 'preempt' }>,
  { gracePeriodSeconds }: JobDeleteOptions,
  signal: AbortSignal,
): Promise<void> {
  const { namespace, name, uid } = victim
  const body = {
    ...{ apiVersion: apiVersionOf(podMigrationJobs), kind: podMigrationJobs.kind },
    metadata: {
      name: preemptionNameOf(view, victim),
      // A job that is deleted takes these jobs with it.
      ownerReferences: [{ ...ownerReference(view.resource, view), controller: true }],
    },
    spec: {
      ...{ mode: 'ReservationFirst', ttl: `${Math.ceil(ttlMs / 1000)}s` },
      podRef: { namespace, name, uid },
      ...(gracePeriodSeconds !== undefined && { deleteOptions: { gracePeriodSeconds } }),
    },
  }
  await api.create(podMigrationJobs, body, { signal }).catch((error: unknown) => {
    // The cache is behind, or another job has the name: the next pass sees which.
    if (!isKubeError(error, 'AlreadyExists')) throw error
  })
}

const preconditions = ({ uid, resourceVersion }: Of<'openGate'>['pod']) => ({ uid, resourceVersion })

const refOf = ({ parsed, name }: Of<'openGate'>['view']) => ({
  ...(parsed.ok && { namespace: parsed.reservation.owner.namespace }),
  name,
})

/** The scheduler keeps the room of the node from all other pods that are not more important. */
export async function nominate(
  api: Pick<Api, 'patch'>,
  { view, pod, node }: Of<'nominate'>,
  signal: AbortSignal,
): Promise<void> {
  const body = { metadata: preconditions(pod), status: { nominatedNodeName: node ?? null } }
  const options = { subresource: 'status', signal } as const
  await api.patch(pods, refOf(view), { type: 'merge', body }, options)
}

/** Gates of the template stay. */
export async function openGate(
  api: Pick<Api, 'patch'>,
  { view, pod }: Of<'openGate'>,
  signal: AbortSignal,
): Promise<void> {
  const gates = [{ name: roomGate, $patch: 'delete' }]
  const body = { metadata: preconditions(pod), spec: { schedulingGates: gates } }
  await api.patch(pods, refOf(view), { type: 'strategic', body }, { signal })
}
