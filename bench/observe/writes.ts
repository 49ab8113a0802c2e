import { labels } from '../../src/api/labels.ts'
import type { KubeObject } from '../../src/kube/object.ts'
import type { Pod } from '../../src/kube/resources.ts'
import type { Stamped } from './recording.ts'
import { isLeaving, kindOf } from './state.ts'

export type PodWrite =
  | { readonly type: 'created'; readonly at: number; readonly pod: Pod }
  | { readonly type: 'relabelled'; readonly at: number; readonly pod: Pod; readonly from: string | undefined }
  | { readonly type: 'deleted'; readonly at: number; readonly pod: Pod }

/**
 * Derives a controller's writes to pods from a watch: creations, changes of our labels, deletions. Writes of the
 * kubelet and the scheduler (status, binding) are ignored.
 * @param known the pods that existed before the first event, by uid
 */
export function podWrites(known: ReadonlyMap<string, Pod>, events: readonly Stamped<Pod>[]): PodWrite[] {
  const last = new Map(known)
  const writes: PodWrite[] = []
  for (const { at, type, object: pod } of events) {
    const { uid } = pod.metadata
    const before = last.get(uid)
    if (type === 'DELETED') {
      // With a grace period the deletion was counted earlier, at its time stamp.
      if (before !== undefined && !isLeaving(before)) writes.push({ type: 'deleted', at, pod })
      last.delete(uid)
      continue
    }
    if (before === undefined) writes.push({ type: 'created', at, pod })
    else {
      if (isLeaving(pod) && !isLeaving(before)) writes.push({ type: 'deleted', at, pod })
      if (ownLabels.some(label => pod.metadata.labels?.[label] !== before.metadata.labels?.[label]))
        writes.push({ type: 'relabelled', at, pod, from: kindOf(before) })
    }
    last.set(uid, pod)
  }
  return writes
}

/**
 * Returns the Unix ms of the first sign that a deletion was accepted: its response, or its event in the watch. On a
 * busy machine either may reach this process first.
 */
export function deletionAccepted(answered: number, uid: string, events: readonly Stamped<Pod>[]): number {
  const event = events.find(
    ({ type, object }) => object.metadata.uid === uid && (type === 'DELETED' || isLeaving(object)),
  )
  return event === undefined ? answered : Math.min(answered, event.at)
}

const ownLabels = [labels.type, labels.slot] as const

/** Counts the status writes among these events: the version changed and the generation did not. */
export function statusWrites<T extends KubeObject>(
  known: ReadonlyMap<string, T>,
  events: readonly Stamped<T>[],
): number {
  const last = new Map(known)
  let writes = 0
  for (const { type, object } of events) {
    const { uid, resourceVersion, generation } = object.metadata
    const before = last.get(uid)?.metadata
    if (type === 'DELETED') last.delete(uid)
    else {
      if (
        before !== undefined &&
        before.generation === generation &&
        before.resourceVersion !== resourceVersion
      )
        writes += 1
      last.set(uid, object)
    }
  }
  return writes
}
