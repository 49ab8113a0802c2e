/** The acts of the mode `ReservationFirst`: the replacement is created, adopted by the ReplicaSet of the other pod, or deleted. */
import { deletionCostAnnotation } from '../../api/labels.ts'
import { jobConditions, lowestDeletionCost, reservationLabel } from '../../api/pod-migration-job.ts'
import type { Api } from '../../kube/api-types.ts'
import { isKubeError } from '../../kube/errors.ts'
import { controllerOf, ownerReference } from '../../kube/owner.ts'
import { apiVersionOf, type Pod, pods, type ReplicaSet, replicaSets } from '../../kube/resources.ts'
import type { Action } from '../decide/view.ts'
import { failed, type Word } from '../decide/word.ts'

type Reserve = Extract<Action, { type: 'createReservation' | 'adopt' }>

/** Deployments tell the pods of their ReplicaSets apart by this label. A pod without it belongs to none of them. */
const hashLabel = 'pod-template-hash'

/** Thrown if the workload cannot adopt a pod of ours. */
export class NoReservation extends Error {
  override readonly name = 'NoReservation'
}

interface Source {
  readonly pod: Pod
  readonly replicaSet: ReplicaSet
  readonly hash: string
}

/** Reads both from the API server: the caches have no templates. Undefined: the pod is gone. */
async function sourceOf(
  api: Pick<Api, 'get'>,
  { pod }: Reserve,
  signal: AbortSignal,
): Promise<Source | undefined> {
  const { namespace, name, uid } = pod
  const unlessGone = (error: unknown) => {
    if (!isKubeError(error, 'NotFound')) throw error
    return undefined
  }
  const now = await api.get(pods, { namespace, name }, { signal }).catch(unlessGone)
  const controller = now && controllerOf(now)
  if (now?.metadata.uid !== uid || controller === undefined) return undefined
  const replicaSet = await api
    .get(replicaSets, { namespace, name: controller.name }, { signal })
    .catch(unlessGone)
  if (replicaSet === undefined || replicaSet.metadata.uid !== controller.uid) return undefined
  const hash = replicaSet.spec?.selector.matchLabels?.[hashLabel]
  if (hash === undefined)
    throw new NoReservation(`ReplicaSet ${controller.name} does not select its pods by ${hashLabel}`)
  return { pod: now, replicaSet, hash }
}

/** Creates the replacement: of the same template, on another node, and as no pod of the ReplicaSet yet. */
export async function createReservation(
  api: Pick<Api, 'get' | 'create'>,
  action: Reserve,
  signal: AbortSignal,
): Promise<void> {
  const source = await sourceOf(api, action, signal)
  if (source === undefined) return
  const { view, pod, name } = action
  const { metadata, spec } = source.replicaSet.spec?.template ?? {}
  const { [hashLabel]: _, ...labels } = metadata?.labels ?? {}
  const { resource } = view
  const body = {
    ...{ apiVersion: apiVersionOf(pods), kind: pods.kind },
    metadata: {
      ...{ name, annotations: metadata?.annotations, labels: { ...labels, [reservationLabel]: view.uid } },
      // A job that is deleted takes its replacement with it. It is no controller: the pod has no workload yet.
      ownerReferences: [{ ...ownerReference(resource, view), controller: false }],
    },
    spec: { ...spec, affinity: elsewhere(spec?.affinity, pod.node) },
  }
  await api.create(pods, body, { namespace: pod.namespace, signal }).catch((error: unknown) => {
    // The cache is behind, or another pod has the name: the next pass sees which.
    if (!isKubeError(error, 'AlreadyExists')) throw error
  })
}

type Affinity = NonNullable<NonNullable<Pod['spec']>['affinity']>

/** Adds to each term that the node is another one: all terms are alternatives. */
function elsewhere(affinity: Affinity | undefined, node: string | undefined): Affinity | undefined {
  if (node === undefined) return affinity
  const not = { key: 'metadata.name', operator: 'NotIn', values: [node] }
  const { nodeAffinity } = affinity ?? {}
  const terms = nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms ?? [{}]
  return {
    ...affinity,
    nodeAffinity: {
      ...nodeAffinity,
      requiredDuringSchedulingIgnoredDuringExecution: {
        nodeSelectorTerms: terms.map(term => ({ ...term, matchFields: [...(term.matchFields ?? []), not] })),
      },
    },
  }
}

/**
 * Makes the other pod the first that the ReplicaSet deletes, and then gives it the replacement in one write. So it has one pod too many, and
 * never one too few.
 */
export async function adopt(
  api: Pick<Api, 'get' | 'patch'>,
  action: Reserve,
  signal: AbortSignal,
): Promise<void> {
  const source = await sourceOf(api, action, signal)
  const { reservation } = action.view
  if (
    source === undefined ||
    reservation.type !== 'present' ||
    source.pod.metadata.deletionTimestamp !== undefined
  )
    return
  const { namespace } = action.pod
  const { name, uid, resourceVersion } = source.pod.metadata
  const changed = (error: unknown) => {
    // The next pass sees what has changed.
    if (!isKubeError(error, 'NotFound', 'Conflict')) throw error
    return undefined
  }
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
    ...{ uid: reservation.uid, resourceVersion: reservation.resourceVersion },
    labels: { [hashLabel]: source.hash },
    ownerReferences: [
      { ...ownerReference(replicaSets, source.replicaSet.metadata), blockOwnerDeletion: true },
    ],
  }
  await api
    .patch(pods, { namespace, name: action.name }, { type: 'merge', body: { metadata } }, { signal })
    .catch(changed)
}

/** Gives the pod that stays the deletion cost that it had before, unless others have changed it since. */
export async function restoreDeletionCost(
  api: Pick<Api, 'get' | 'patch'>,
  { pod, cost }: Extract<Action, { type: 'restoreDeletionCost' }>,
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

export const noReservation = (message: string): Word => ({
  ...failed('FailedCreateReservation', message),
  condition: { type: jobConditions.reservationCreated, status: 'False' },
})
