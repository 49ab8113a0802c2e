import { type BackupPodSet, backupPodSets } from '../api/backuppodset.ts'
import { type MigratingPod, migratingPods } from '../api/migrating-pod.ts'
import { conditionTypes } from '../api/reasons.ts'
import type { Api } from '../kube/api.ts'
import type { Clock } from '../kube/clock.ts'
import { refusedPauseMs } from '../kube/conditions.ts'
import { isEqual } from '../kube/equal.ts'
import { isKubeError, messageOf } from '../kube/errors.ts'
import type { PassContext } from '../kube/manager-types.ts'
import type { Result } from '../kube/reconcile.ts'
import type { Store } from '../kube/store.ts'
import { carriedBy } from './carried.ts'
import { type ObserveDeps, observe } from './observe.ts'
import { newSet, setSpecOf, templateKeys, updatedSet } from './own-set.ts'
import { activePodOf, statusOf } from './status.ts'

export interface MigratingPodDeps extends ObserveDeps {
  readonly objects: Pick<Store<MigratingPod>, 'get'>
  readonly clock: Pick<Clock, 'now'>
}

/**
 * Makes one pass over one MigratingPod: it keeps the spec of its set, and tells where the pod is. The controller of sets
 * creates the pods and moves them.
 */
export async function reconcile(
  deps: MigratingPodDeps,
  key: string,
  { api, log, signal }: Pick<PassContext, 'api' | 'log' | 'signal'>,
): Promise<Result> {
  const object = deps.objects.get(key)
  // The garbage collector deletes the set, its pods and the records of its slot.
  if (object === undefined || object.metadata.deletionTimestamp !== undefined) return {}
  const { view, set } = observe(object, deps)
  // A set that a user has deleted would start the app from an empty state.
  const mayCreate = view.set.type === 'absent' && object.status?.completion === undefined
  const refused =
    set !== undefined || mayCreate ? await writeSet(api, object, set, activePodOf(view), signal) : undefined
  if (refused !== undefined) log.warn({ problem: refused }, 'the set of the MigratingPod is refused')
  const now = deps.clock.now()
  const status = statusOf({ ...view, ...(refused !== undefined && { refused }) }, now)
  if (!isEqual(status, object.status)) await writeStatus(api, object, status, signal)
  if (refused === undefined) return {}
  const ready = status.conditions?.find(({ type }) => type === conditionTypes.ready)
  return { requeueAfterMs: refusedPauseMs(ready, now) }
}

/** @returns why the API server has refused the set; undefined: it has not. */
async function writeSet(
  api: Pick<Api, 'create' | 'replace'>,
  object: MigratingPod,
  set: BackupPodSet | undefined,
  active: ReturnType<typeof activePodOf>,
  signal: AbortSignal,
): Promise<string | undefined> {
  const { namespace = '', name } = object.metadata
  const { template } = object.spec
  // Between two pods, the set keeps what the last one had.
  const last = active ?? set?.spec.template.metadata ?? {}
  const keys = templateKeys(object, set)
  const spec = setSpecOf(object.spec, carriedBy(last, template.metadata, keys))
  try {
    if (set === undefined) await api.create(backupPodSets, newSet(object, spec, keys), { namespace, signal })
    else {
      const next = updatedSet(set, spec, keys)
      if (next !== undefined) await api.replace(backupPodSets, { namespace, name }, next, { signal })
    }
    return undefined
  } catch (error) {
    if (isKubeError(error, 'Invalid', 'Forbidden')) return messageOf(error)
    // Another operator has made it; the cache shows it soon.
    if (isKubeError(error, 'AlreadyExists')) return undefined
    throw error
  }
}

/** With the version that was decided from: after a change, the next pass decides again. */
async function writeStatus(
  api: Pick<Api, 'replace'>,
  object: MigratingPod,
  status: MigratingPod['status'],
  signal: AbortSignal,
): Promise<void> {
  const { namespace = '', name } = object.metadata
  const body = { ...object, apiVersion: 'backup.example.com/v1alpha1', kind: migratingPods.kind, status }
  await api
    .replace(migratingPods, { namespace, name }, body, { subresource: 'status', signal })
    .catch((error: unknown) => {
      if (!isKubeError(error, 'NotFound')) throw error
    })
}
