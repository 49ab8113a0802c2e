import type { BackupPodSet } from '../api/backuppodset.ts'
import { type ClonePod, clonePodUidAnnotation } from '../api/clone-pod.ts'
import { labels } from '../api/labels.ts'
import { isOfMigratingPod, type MigratingPod } from '../api/migrating-pod.ts'
import { type ParsedClonePod, parseClonePod } from '../api/parse-clone-pod.ts'
import { kindLabelOf } from '../api/pod-kind.ts'
import { keyOfRef } from '../kube/object.ts'
import { controllerOf } from '../kube/owner.ts'
import type { Pod } from '../kube/resources.ts'
import type { Store } from '../kube/store.ts'
import { comeBefore } from './decide.ts'
import type { CloneView, SourceFact, TargetFact } from './view.ts'

/** Index of ClonePods by namespace. */
export const byNamespace = 'namespace'
export const clonePodIndexes = {
  [byNamespace]: ({ metadata: { namespace = '' } }: ClonePod): readonly string[] => [namespace],
}

export interface ObserveDeps {
  readonly objects: Pick<Store<ClonePod>, 'by'>
  readonly pods: Pick<Store<Pod>, 'get'>
  readonly sets: Pick<Store<BackupPodSet>, 'get'>
  readonly migratingPods: Pick<Store<MigratingPod>, 'get'> & { hasSynced(): boolean }
}

/** Performs all reads of a pass, from the caches only. */
export function observe(object: ClonePod, deps: ObserveDeps): CloneView {
  const { namespace = '' } = object.metadata
  const parsed = parseClonePod(object)
  return {
    ...{ object, parsed },
    source: parsed.ok ? sourceFactOf(namespace, parsed.wish, deps) : { type: 'absent' },
    target: parsed.ok ? targetFactOf(object, parsed.wish, deps) : { type: 'absent' },
    before: comeBefore(object, deps.objects.by(byNamespace, namespace)),
  }
}

function sourceFactOf(
  namespace: string,
  { source: { name } }: ParsedClonePod,
  { pods, sets, migratingPods }: ObserveDeps,
): SourceFact {
  const pod = pods.get(keyOfRef({ namespace, name }))
  const owner = pod?.metadata.labels?.[labels.set]
  if (pod === undefined || owner === undefined) {
    const now = migratingPods.get(keyOfRef({ namespace, name: name.replace(/-\d+$/, '') }))?.status?.activePod
    return { type: 'absent', ...(now !== undefined && { now }) }
  }
  const unsaved = (why: string): SourceFact => ({ type: 'unsaved', why })
  const key = keyOfRef({ namespace, name: owner })
  const set = sets.get(key)
  if (pod.metadata.deletionTimestamp !== undefined) return unsaved(`the pod ${name} is being deleted`)
  if (set === undefined || controllerOf(pod)?.uid !== set.metadata.uid)
    return unsaved(`the pod ${name} has no owner whose memory is saved`)
  if (kindLabelOf(pod) !== 'primary') return unsaved(`the pod ${name} is a backup: name a primary`)
  // Its template has no labels and annotations that only its present pod has.
  const moving = isOfMigratingPod(set) ? migratingPods.get(key) : undefined
  if (set.spec.checkpoint === undefined || set.spec.checkpoint.source === 'http')
    return unsaved(`the memory of the pod ${name} is not saved: add checkpoint to the BackupPodSet ${owner}`)
  const { uid } = pod.metadata
  return { type: 'found', uid, node: pod.spec?.nodeName, owner: (moving ?? set).spec }
}

function targetFactOf(
  { metadata: { namespace, uid } }: ClonePod,
  { source, target }: ParsedClonePod,
  { migratingPods }: ObserveDeps,
): TargetFact {
  if (!migratingPods.hasSynced()) return { type: 'unknown' }
  const pod = migratingPods.get(keyOfRef({ namespace, name: target }))
  if (pod === undefined) return { type: 'absent' }
  const owner = controllerOf(pod)
  const isReleased = owner === undefined && pod.metadata.annotations?.[clonePodUidAnnotation] === uid
  const isOurs = (owner?.uid === uid || isReleased) && pod.spec.clonePod === source.name
  if (isOurs && pod.metadata.deletionTimestamp === undefined) return { type: 'ours', pod, isReleased }
  if (pod.metadata.deletionTimestamp !== undefined) return { type: 'ending' }
  return { type: 'taken', owner: owner === undefined ? 'a user' : `${owner.kind} ${owner.name}` }
}
