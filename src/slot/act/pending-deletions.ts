/**
 * Pods whose deletion we have requested, kept until the cache shows it. Without them, a pass that runs before the watch
 * event would count such a pod as alive, and a release would look like a loss.
 */
export interface PendingDeletions {
  /** Call before the request is sent: the watch event may arrive before the response. */
  add(pod: { readonly namespace: string; readonly name: string; readonly uid: string }): void
  /** The API server rejected the deletion: the pod lives. */
  remove(uid: string): void
  has(uid: string): boolean
  /** The pod has left the cache, and all users of `has` have seen that; its deletionTimestamp alone is not the end. */
  forget(uid: string): void
}

/** @param cachedUid uid of the pod in the cache under a name. A pod that is not in the cache needs no entry. */
export function createPendingDeletions(
  cachedUid: (ref: { readonly namespace: string; readonly name: string }) => string | undefined,
): PendingDeletions {
  const uids = new Set<string>()
  return {
    add: pod => {
      if (cachedUid(pod) === pod.uid) uids.add(pod.uid)
    },
    remove: uid => uids.delete(uid),
    has: uid => uids.has(uid),
    forget: uid => void uids.delete(uid),
  }
}
