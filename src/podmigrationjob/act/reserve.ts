/** The acts for Reservations: they are created, and their pods are created, adopted by the ReplicaSet of the other pod, or deleted. */
import { deletionCostAnnotation, prefix } from '../../api/labels.ts'
import {
  type JobDeleteOptions,
  jobConditions,
  lowestDeletionCost,
  reservationLabel,
  roomGate,
} from '../../api/pod-migration-job.ts'
import { reservations } from '../../api/reservation.ts'
import type { Api } from '../../kube/api-types.ts'
import { isKubeError } from '../../kube/errors.ts'
import { controllerOf, ownerReference } from '../../kube/owner.ts'
import { apiVersionOf, type Pod, pods, type ReplicaSet, replicaSets } from '../../kube/resources.ts'
import type { ReservationAction } from '../decide/reservation.ts'
import { reservationNameOf } from '../decide/reservation-name.ts'
import type { Action } from '../decide/view.ts'
import { failed, type Word } from '../decide/word.ts'
import { elsewhere, NoReservation, placed } from './placed.ts'

type Of<Type extends Action['type']> = Extract<Action, { type: Type }>

/** Deployments tell the pods of their ReplicaSets apart by this label. A pod without it belongs to none of them. */
const hashLabel = 'pod-template-hash'

interface Source {
  readonly pod: Pod
  readonly replicaSet: ReplicaSet
  readonly hash: string
}

const unlessGone = (error: unknown) => {
  if (!isKubeError(error, 'NotFound')) throw error
  return undefined
}

function hashOf({ metadata, spec }: ReplicaSet): string {
  const hash = spec?.selector.matchLabels?.[hashLabel]
  if (hash === undefined)
    throw new NoReservation(
      'FailedCreateReservation',
      `ReplicaSet ${metadata.name} does not select its pods by ${hashLabel}`,
    )
  return hash
}

/** Reads both from the API server: the caches have no templates. Undefined: the pod is gone. */
async function sourceOf(
  api: Pick<Api, 'get'>,
  { pod }: Of<'createReservation' | 'adopt'>,
  signal: AbortSignal,
): Promise<Source | undefined> {
  const { namespace, name, uid } = pod
  const now = await api.get(pods, { namespace, name }, { signal }).catch(unlessGone)
  const controller = now && controllerOf(now)
  if (now?.metadata.uid !== uid || controller === undefined) return undefined
  const replicaSet = await api
    .get(replicaSets, { namespace, name: controller.name }, { signal })
    .catch(unlessGone)
  if (replicaSet === undefined || replicaSet.metadata.uid !== controller.uid) return undefined
  return { pod: now, replicaSet, hash: hashOf(replicaSet) }
}

/** Creates the Reservation of a job: for a pod of the same ReplicaSet, on another node. */
export async function createReservation(
  api: Pick<Api, 'get' | 'create'>,
  action: Of<'createReservation'>,
  signal: AbortSignal,
): Promise<void> {
  const source = await sourceOf(api, action, signal)
  const { view, pod } = action
  if (source === undefined || !view.parsed.ok) return
  const { metadata } = source.replicaSet
  const { placement } = view.parsed.job
  // A contradiction between both sides ends the job here, before a Reservation exists.
  placed(source.replicaSet.spec?.template?.spec ?? { containers: [] }, placement)
  const controller = {
    ...{ apiVersion: apiVersionOf(replicaSets), kind: replicaSets.kind, namespace: pod.namespace },
    ...{ name: metadata.name, uid: metadata.uid },
  }
  const body = {
    ...{ apiVersion: apiVersionOf(reservations), kind: reservations.kind },
    metadata: {
      name: reservationNameOf(view),
      // A job that is deleted takes its Reservation with it, and that its pod.
      ownerReferences: [{ ...ownerReference(view.resource, view), controller: false }],
    },
    // The job decides how long it lives.
    spec: { ttl: '0s', owners: [{ controller }], template: { spec: elsewhere(placement, pod.node) } },
  }
  await api.create(reservations, body, { signal }).catch((error: unknown) => {
    // The cache is behind, or another Reservation has the name: the next pass sees which.
    if (!isKubeError(error, 'AlreadyExists')) throw error
  })
}

/** Writes the Reservation that the operator has created into the spec of its job. */
export async function referTo(
  api: Pick<Api, 'patch'>,
  { view, reservation }: Of<'referTo'>,
  signal: AbortSignal,
): Promise<void> {
  const { uid, resourceVersion, resource, name } = view
  const reservationRef = {
    ...{ apiVersion: apiVersionOf(reservation.resource), kind: reservation.resource.kind },
    ...{ name: reservation.name, uid: reservation.uid },
  }
  const body = { metadata: { uid, resourceVersion }, spec: { reservationOptions: { reservationRef } } }
  await api.patch(resource, { name }, { type: 'merge', body }, { signal }).catch(changed)
}

/** Creates the pod that holds the room: of the template of its ReplicaSet, and as no pod of that yet. */
export async function createReservedPod(
  api: Pick<Api, 'get' | 'create'>,
  { view, isGated }: Extract<ReservationAction, { type: 'createPod' }>,
  signal: AbortSignal,
): Promise<void> {
  if (!view.parsed.ok) return
  const { owner, placement } = view.parsed.reservation
  const { namespace } = owner
  const replicaSet = await api.get(replicaSets, { namespace, name: owner.name }, { signal }).catch(unlessGone)
  if (replicaSet === undefined || (owner.uid ?? replicaSet.metadata.uid) !== replicaSet.metadata.uid)
    throw new NoReservation(
      'InvalidReservation',
      `there is no ReplicaSet ${namespace}/${owner.name}, or another one`,
    )
  hashOf(replicaSet)
  const { metadata, spec } = replicaSet.spec?.template ?? {}
  const { [hashLabel]: _, ...labels } = metadata?.labels ?? {}
  // Only the operator and the agents may write these, and this pod is the operator's.
  const [mark] = Object.keys({ ...labels, ...metadata?.annotations }).filter(key => key.startsWith(prefix))
  if (mark !== undefined)
    throw new NoReservation(
      'InvalidReservation',
      `the template of ReplicaSet ${namespace}/${owner.name} has ${mark}, which only the operator may write: remove it`,
    )
  const body = {
    ...{ apiVersion: apiVersionOf(pods), kind: pods.kind },
    metadata: {
      ...{ name: view.name, annotations: metadata?.annotations },
      labels: { ...labels, [reservationLabel]: view.uid },
      // A Reservation that is deleted takes its pod with it. It is no controller: the pod has no workload yet.
      ownerReferences: [{ ...ownerReference(view.resource, view), controller: false }],
    },
    spec: { ...placed(spec ?? { containers: [] }, placement), ...(isGated && gated(spec)) },
  }
  await api.create(pods, body, { namespace, signal }).catch((error: unknown) => {
    // The cache is behind, or another pod has the name: the next pass sees which.
    if (!isKubeError(error, 'AlreadyExists')) throw error
  })
}

const gated = (spec: Pod['spec']) => ({
  schedulingGates: [...(spec?.schedulingGates ?? []), { name: roomGate }],
})

const changed = (error: unknown) => {
  // The next pass sees what has changed.
  if (!isKubeError(error, 'NotFound', 'Conflict')) throw error
  return undefined
}

/** Deletes the pod first, so that its room is free although the garbage collector is slow. */
export async function deleteReservation(
  api: Pick<Api, 'delete'>,
  { view, reservation }: Of<'deleteReservation'>,
  signal: AbortSignal,
): Promise<void> {
  const { resource, name, uid, resourceVersion, pod, owner } = reservation
  const namespace = owner?.namespace ?? (view.parsed.ok ? view.parsed.job.pod.namespace : undefined)
  if (pod !== undefined) {
    const preconditions = { uid: pod.uid, resourceVersion: pod.resourceVersion }
    const deleted = await api
      .delete(pods, { namespace, name }, preconditions, { signal })
      .then(() => true)
      .catch((error: unknown) => {
        if (!isKubeError(error, 'NotFound', 'Conflict')) throw error
        return error.code === 'NotFound'
      })
    // It has changed: the workload may have it since.
    if (!deleted) return
  }
  await api.delete(resource, { name }, { uid, resourceVersion }, { signal }).catch(changed)
}

/** A version that the job names is that of the pod before the operator changes it. */
function checkVersion({ metadata }: Pod, { preconditions }: JobDeleteOptions): void {
  const { resourceVersion } = preconditions ?? {}
  const isLowered = metadata.annotations?.[deletionCostAnnotation] === lowestDeletionCost
  if (resourceVersion !== undefined && !isLowered && resourceVersion !== metadata.resourceVersion)
    throw new NoReservation(
      'FailedEvict',
      `the pod has resourceVersion ${metadata.resourceVersion}, and deleteOptions.preconditions wants ${resourceVersion}`,
    )
}

/**
 * Makes the other pod the first that the ReplicaSet deletes, and then gives it the replacement in one write. So it has one pod too many, and
 * never one too few.
 */
export async function adopt(
  api: Pick<Api, 'get' | 'patch'>,
  action: Of<'adopt'>,
  options: JobDeleteOptions,
  signal: AbortSignal,
): Promise<void> {
  const source = await sourceOf(api, action, signal)
  const { reservation, replacement } = action
  if (source === undefined || source.pod.metadata.deletionTimestamp !== undefined) return
  const { owner } = reservation
  const { namespace } = action.pod
  if (owner?.namespace !== namespace || owner.name !== source.replicaSet.metadata.name)
    throw new NoReservation(
      'InvalidReservation',
      `Reservation ${reservation.name} is for another owner than ReplicaSet ${source.replicaSet.metadata.name} of the pod`,
    )
  checkVersion(source.pod, options)
  const { name, uid, resourceVersion } = source.pod.metadata
  const annotations = { [deletionCostAnnotation]: lowestDeletionCost }
  const cheap = await api
    .patch(
      pods,
      { namespace, name },
      { type: 'merge', body: { metadata: { uid, resourceVersion, annotations } } },
      { signal },
    )
    .catch(changed)
  if (cheap === undefined) return
  const metadata = {
    ...{ uid: replacement.uid, resourceVersion: replacement.resourceVersion },
    labels: { [hashLabel]: source.hash },
    ownerReferences: [
      { ...ownerReference(replicaSets, source.replicaSet.metadata), blockOwnerDeletion: true },
    ],
  }
  await api
    .patch(pods, { namespace, name: reservation.name }, { type: 'merge', body: { metadata } }, { signal })
    .catch(changed)
}

/** Gives the pod that stays the deletion cost that it had before, unless others have changed it since. */
export async function restoreDeletionCost(
  api: Pick<Api, 'get' | 'patch'>,
  { pod, cost }: Of<'restoreDeletionCost'>,
  signal: AbortSignal,
): Promise<void> {
  const { namespace, name, uid } = pod
  try {
    const { metadata } = await api.get(pods, { namespace, name }, { signal })
    if (metadata.uid !== uid || metadata.annotations?.[deletionCostAnnotation] !== lowestDeletionCost) return
    const { resourceVersion } = metadata
    const annotations = { [deletionCostAnnotation]: cost ?? null }
    const body = { metadata: { uid, resourceVersion, annotations } }
    await api.patch(pods, { namespace, name }, { type: 'merge', body }, { signal })
  } catch (error) {
    // The next pass sees what has changed.
    if (!isKubeError(error, 'NotFound', 'Conflict')) throw error
  }
}

export const noReservation = (reason: NoReservation['reason'], message: string): Word => ({
  ...failed(reason, message),
  condition: {
    type: reason === 'FailedEvict' ? jobConditions.eviction : jobConditions.reservationCreated,
    status: 'False',
  },
})
