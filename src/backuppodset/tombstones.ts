import type { Pod } from '../kube/resources.ts'
import type { Change } from '../kube/store.ts'

/**
 * Pods whose deletion we have asked for, until the cache knows it too. Without them a pass that runs before the watch
 * event would count such a pod as alive, and a release would look like a loss.
 */
export interface Tombstones {
  /** Before the request is sent: its watch event may arrive before its answer. */
  add(pod: { readonly namespace: string; readonly name: string; readonly uid: string }): void
  /** The deletion was refused: the pod lives. */
  remove(uid: string): void
  has(uid: string): boolean
  /** To be called with every change of a pod, after those who ask `has`. */
  note(change: Change<Pod>): void
}

/** @param cachedUid uid of the pod that the cache shows under a name; one that it shows no more needs no stone. */
export function createTombstones(
  cachedUid: (ref: { readonly namespace: string; readonly name: string }) => string | undefined,
): Tombstones {
  const uids = new Set<string>()
  return {
    add: pod => {
      if (cachedUid(pod) === pod.uid) uids.add(pod.uid)
    },
    remove: uid => uids.delete(uid),
    has: uid => uids.has(uid),
    // A pod that is being deleted speaks for itself only until it is gone, so the entry stays as long as the pod.
    note: change => {
      if (change.type === 'deleted') uids.delete(change.object.metadata.uid)
    },
  }
}
