import { type ClonePod, clonePodLabel, clonePods, clonePodUidAnnotation } from '../api/clone-pod.ts'
import { type MigratingPod, type MigratingPodSpec, migratingPods } from '../api/migrating-pod.ts'
import type { Api } from '../kube/api.ts'
import type { Clock } from '../kube/clock.ts'
import { isEqual } from '../kube/equal.ts'
import { isKubeError, messageOf } from '../kube/errors.ts'
import type { PassContext } from '../kube/manager-types.ts'
import { ownerReference } from '../kube/owner.ts'
import type { Result } from '../kube/reconcile.ts'
import { apiVersionOf } from '../kube/resources.ts'
import type { Store } from '../kube/store.ts'
import { planOf } from './decide.ts'
import { type ObserveDeps, observe } from './observe.ts'
import type { CloneAction, CloneView } from './view.ts'

export interface ClonePodDeps extends ObserveDeps {
  readonly objects: Pick<Store<ClonePod>, 'get' | 'by'>
  readonly clock: Pick<Clock, 'now'>
}

/** Makes one pass over one ClonePod: it makes a MigratingPod with a copy of the memory, and gives it to the user once it serves. */
export async function reconcile(
  deps: ClonePodDeps,
  key: string,
  { api, log, signal }: Pick<PassContext, 'api' | 'log' | 'signal'>,
): Promise<Result> {
  const object = deps.objects.get(key)
  // The garbage collector deletes a copy that has not been released.
  if (object === undefined || object.metadata.deletionTimestamp !== undefined) return {}
  const view = observe(object, deps)
  const now = deps.clock.now()
  const plan = planOf(view, now)
  const refused = await perform(api, plan.action, view, signal)
  if (refused !== undefined) log.warn({ problem: refused }, 'a step of the ClonePod is refused')
  if (plan.action.type === 'collect') return {}
  const { status, requeueAfterMs } = refused === undefined ? plan : planOf({ ...view, refused }, now)
  if (!isEqual(status, object.status ?? {})) await writeStatus(api, object, status, signal)
  return requeueAfterMs === undefined ? {} : { requeueAfterMs }
}

/** @returns why the API server has refused the step; undefined: it has not. */
async function perform(
  api: Pick<Api, 'create' | 'replace' | 'delete'>,
  action: CloneAction,
  { object, parsed }: CloneView,
  signal: AbortSignal,
): Promise<string | undefined> {
  const { namespace = '' } = object.metadata
  const { uid, resourceVersion } = object.metadata
  try {
    switch (action.type) {
      case 'none':
        return undefined
      case 'create':
        if (parsed.ok)
          await api.create(migratingPods, newPod(object, parsed.wish.target, action.spec), {
            namespace,
            signal,
          })
        return undefined
      case 'release': {
        const { name } = action.pod.metadata
        await api.replace(migratingPods, { namespace, name }, released(object, action.pod), { signal })
        return undefined
      }
      case 'delete': {
        const { metadata } = action.pod
        const as = { uid: metadata.uid, resourceVersion: metadata.resourceVersion }
        await api.delete(migratingPods, { namespace, name: metadata.name }, as, { signal })
        return undefined
      }
      case 'collect':
        await api.delete(
          clonePods,
          { namespace, name: object.metadata.name },
          { uid, resourceVersion },
          { signal },
        )
        return undefined
      default:
        return action satisfies never
    }
  } catch (error) {
    if (isKubeError(error, 'Invalid', 'Forbidden')) return messageOf(error)
    // Another operator has made it, or a user; the cache shows it soon. An object that is to be deleted may be gone.
    if (isKubeError(error, 'AlreadyExists', 'NotFound')) return undefined
    throw error
  }
}

const newPod = ({ metadata }: ClonePod, name: string, spec: MigratingPodSpec) => ({
  apiVersion: apiVersionOf(migratingPods),
  kind: migratingPods.kind,
  metadata: {
    ...{ name, namespace: metadata.namespace },
    labels: { [clonePodLabel]: metadata.name },
    annotations: { [clonePodUidAnnotation]: metadata.uid },
    ownerReferences: [ownerReference(clonePods, metadata)],
  },
  spec,
})

const released = ({ metadata: { uid } }: ClonePod, pod: MigratingPod): MigratingPod => ({
  ...pod,
  ...{ apiVersion: apiVersionOf(migratingPods), kind: migratingPods.kind },
  metadata: {
    ...pod.metadata,
    ownerReferences: (pod.metadata.ownerReferences ?? []).filter(owner => owner.uid !== uid),
  },
})

/** With the version that was decided from: after a change, the next pass decides again. */
async function writeStatus(
  api: Pick<Api, 'replace'>,
  object: ClonePod,
  status: ClonePod['status'],
  signal: AbortSignal,
): Promise<void> {
  const { namespace = '', name } = object.metadata
  const body: ClonePod = {
    ...object,
    ...{ apiVersion: apiVersionOf(clonePods), kind: clonePods.kind },
    ...(status && { status }),
  }
  await api
    .replace(clonePods, { namespace, name }, body, { subresource: 'status', signal })
    .catch((error: unknown) => {
      if (!isKubeError(error, 'NotFound')) throw error
    })
}
