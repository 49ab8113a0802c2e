import { backupPodSets } from '../../api/backuppodset.ts'
import { labels } from '../../api/labels.ts'
import { kindLabelOf } from '../../api/pod-kind.ts'
import { controllerOf } from '../../kube/owner.ts'
import type { Pod } from '../../kube/resources.ts'
import { PodChangedError, patchPod } from '../../slot/act/write-pod.ts'
import { controllerReference } from '../../slot/decide/owner.ts'
import type { PodRef } from '../../slot/decide/pod-ref.ts'
import type { ActContext } from './context.ts'

/**
 * Adopts an orphan that has the set's labels. Reads the set from the API server first: with a stale cache, a set that
 * is being deleted would adopt pods that the garbage collector has just orphaned.
 */
export async function adopt(context: ActContext, pod: PodRef, known: Pod): Promise<Pod> {
  const { api, owner, signal } = context
  const fresh = await api.get(backupPodSets, { namespace: owner.namespace, name: owner.name }, { signal })
  if (fresh.metadata.uid !== owner.uid || fresh.metadata.deletionTimestamp !== undefined)
    throw new PodChangedError(`set ${owner.name} is being deleted and adopts no pod`, false)
  const isOrphan = (current: Pod) => controllerOf(current) === undefined
  return patchPod(context, pod, isOrphan, (current = known) => ({
    labels: { [labels.role]: kindLabelOf(current) },
    ownerReferences: [...(current.metadata.ownerReferences ?? []), controllerReference(owner)],
  }))
}

/** Releases a pod whose labels a user changed, for example to debug it in isolation. */
export function release(context: ActContext, pod: PodRef, known: Pod): Promise<Pod> {
  const { uid } = context.owner
  return patchPod(
    context,
    pod,
    current => controllerOf(current)?.uid === uid,
    (current = known) => ({
      labels: { [labels.role]: null },
      ownerReferences: (current.metadata.ownerReferences ?? []).filter(owner => owner.uid !== uid),
    }),
  )
}
