/**
 * Read your own writes: checks whether the cache is as new as our own writes. A pass that decides on an older cache
 * repeats its last actions: it creates a second pod, promotes a second backup. See
 * docs/adr/0031-read-your-own-writes.md.
 *
 * After each write for an owner, the controller notes the resourceVersion here. Before the next pass over that owner,
 * `ready` says whether the caches have reached that version. Versions are compared only within one resource, where they
 * form one sequence.
 *
 * A deletion is recognised by its effect, since the answer to a DELETE need not carry a version. The deletion has been
 * seen once the cache has reached at least the version of the deleted object, and shows under its name nothing, another
 * uid, or the object with a deletionTimestamp. That covers a graceful deletion (MODIFIED with the timestamp, DELETED
 * when kubelet or finalizers are done), an immediate one (DELETED; for a pod MODIFIED and DELETED at once), and a 404
 * because another client was faster. It means that the object is going away, not that it is gone.
 */
import { type Clock, elapses } from './clock.ts'
import type { Log } from './log.ts'
import { type KubeObject, keyOf, parseResourceVersion } from './object.ts'
import type { Store } from './store.ts'

/** The state of the caches. `resource` is a `resourceName`: `pods`, `leases.coordination.k8s.io`. */
export interface CacheView {
  /** True if a cache will show the present state of this object, or its removal from there. */
  covers(resource: string, object: KubeObject): boolean
  /**
   * The version up to which the cache has seen everything. @throws TypeError when there is no cache of this resource.
   */
  seen(resource: string): bigint
  /** Returns undefined also where there is no cache. */
  get(resource: string, key: string): KubeObject | undefined
  /** @returns the function that ends the subscription. */
  onAdvance(listener: () => void): () => void
}

/**
 * The view of some stores, given by the `resourceName` of their objects. `selects` tells, for stores with a part of a
 * resource, which objects belong to that part.
 */
export function cacheView(
  stores: Readonly<Record<string, Store<KubeObject>>>,
  selects: Readonly<Record<string, (object: KubeObject) => boolean>> = {},
): CacheView {
  const of = (resource: string) => {
    const store = stores[resource]
    // Without a cache `ready` would never be true: better to fail at the first write.
    if (!store) throw new TypeError(`no cache of ${resource}`)
    return store
  }
  return {
    covers: (resource, object) => {
      const store = stores[resource]
      if (store === undefined) return false
      return store.get(keyOf(object)) !== undefined || selects[resource]?.(object) !== false
    },
    seen: resource => of(resource).resourceVersion(),
    get: (resource, key) => stores[resource]?.get(key),
    onAdvance(listener) {
      const ends = Object.values(stores).map(store => store.onAdvance(listener))
      return () => {
        for (const end of ends) end()
      }
    },
  }
}

export interface ConsistencyMetrics {
  /** consistency_expired_total: a write was never seen; the cache is broken or does not cover it. */
  expired?(resource: string): void
}

export interface ConsistencyOptions {
  readonly cache: CacheView
  readonly clock: Clock
  readonly log: Log
  readonly metrics?: ConsistencyMetrics | undefined
  /**
   * Milliseconds after which an unseen write is forgotten. Without this, an etcd restored from a backup, whose versions
   * start again lower, would block an owner for ever. Default 5 min.
   */
  readonly expireMs?: number | undefined
}

export interface ConsistencyStore {
  readonly cache: CacheView
  /**
   * Notes a write for `owner` (any key). Call `discard` when the owner is gone, so that its successor starts clean.
   * @param resource its `resourceName`.
   * @param resourceVersion from the API server's answer.
   */
  wrote(owner: string, resource: string, resourceVersion: string | bigint): void
  /**
   * Notes an accepted deletion, or a deletion that found nothing (NotFound).
   * @param object the last known state before the deletion.
   */
  deleted(owner: string, resource: string, object: KubeObject): void
  /** True if the caches have seen everything that was noted for this owner, or the notes have expired. */
  ready(owner: string): boolean
  /**
   * Calls `listener` once, as soon as `ready(owner)` is true. It notices expired notes only at the next change of a
   * cache or call. Replaces an earlier listener of this owner. For callers that have other work meanwhile.
   */
  onReady(owner: string, listener: () => void): void
  /**
   * Resolves true as soon as `ready(owner)` is true, or false after `timeoutMs` (default: never).
   * @throws the signal's reason.
   */
  waitReady(owner: string, signal?: AbortSignal, timeoutMs?: number): Promise<boolean>
  /** Forgets an owner, e.g. when it is gone, and ends all waits for it. */
  clear(owner: string): void
  /** How many owners have unseen writes. */
  readonly size: number
}

interface Deletion {
  readonly resource: string
  readonly key: string
  readonly uid: string
  readonly version: bigint
}

interface Notes {
  /** The highest version written, by resource. */
  readonly writes: Map<string, bigint>
  /** By uid. */
  readonly deletions: Map<string, Deletion>
  /** Monotonic milliseconds of the last note. */
  at: number
}

export function createConsistencyStore(options: ConsistencyOptions): ConsistencyStore {
  const { cache, clock, log, metrics, expireMs = 300_000 } = options
  const owners = new Map<string, Notes>()
  const waiters = new Set<{ readonly owner: string; readonly resolve: () => void }>()
  const listeners = new Map<string, () => void>()
  let unsubscribe: (() => void) | undefined

  const notesOf = (owner: string): Notes => {
    const known = owners.get(owner)
    const notes = known ?? { writes: new Map(), deletions: new Map(), at: 0 }
    if (!known) owners.set(owner, notes)
    notes.at = clock.monotonic()
    return notes
  }

  const deletionSeen = ({ resource, key, uid, version }: Deletion): boolean => {
    // Below that version the object may be absent because its creation has not arrived.
    if (cache.seen(resource) < version) return false
    const object = cache.get(resource, key)
    return !object || object.metadata.uid !== uid || object.metadata.deletionTimestamp !== undefined
  }

  const ready = (owner: string): boolean => {
    const notes = owners.get(owner)
    if (!notes) return true
    for (const [resource, version] of notes.writes)
      if (cache.seen(resource) >= version) notes.writes.delete(resource)
    for (const [uid, deletion] of notes.deletions) if (deletionSeen(deletion)) notes.deletions.delete(uid)
    const unseen = [...notes.writes.keys(), ...[...notes.deletions.values()].map(({ resource }) => resource)]
    if (unseen.length > 0 && clock.monotonic() - notes.at < expireMs) return false
    if (unseen.length > 0) {
      log.error(
        { owner, resources: unseen, expireMs },
        'the cache never showed own writes; continuing without them',
      )
      for (const resource of unseen) metrics?.expired?.(resource)
    }
    owners.delete(owner)
    return true
  }

  const check = () => {
    for (const waiter of waiters) if (ready(waiter.owner)) waiter.resolve()
    for (const [owner, listener] of [...listeners]) {
      if (!ready(owner)) continue
      listeners.delete(owner)
      listener()
    }
    unlisten()
  }
  const unlisten = () => {
    if (waiters.size > 0 || listeners.size > 0) return
    unsubscribe?.()
    unsubscribe = undefined
  }

  return {
    cache,
    wrote(owner, resource, resourceVersion) {
      const version =
        typeof resourceVersion === 'bigint' ? resourceVersion : parseResourceVersion(resourceVersion)
      // The event of a write often arrives before the write's own answer: then there is nothing to note.
      if (cache.seen(resource) >= version) return
      const { writes } = notesOf(owner)
      if (version > (writes.get(resource) ?? 0n)) writes.set(resource, version)
    },
    deleted(owner, resource, object) {
      const { uid, resourceVersion } = object.metadata
      const version = parseResourceVersion(resourceVersion)
      const deletion = { resource, key: keyOf(object), uid, version }
      if (!deletionSeen(deletion)) notesOf(owner).deletions.set(uid, deletion)
    },
    ready,
    onReady(owner, listener) {
      listeners.set(owner, listener)
      unsubscribe ??= cache.onAdvance(check)
      check()
    },
    async waitReady(owner, signal, timeoutMs) {
      signal?.throwIfAborted()
      if (ready(owner)) return true
      const over = new AbortController()
      const cases: Promise<boolean>[] = []
      const waiter = { owner, resolve: () => {} }
      cases.push(
        new Promise(resolve => {
          waiter.resolve = () => resolve(true)
        }),
      )
      // The notes also expire without news from the caches.
      cases.push(elapses(clock, expireMs, over.signal).then(() => ready(owner)))
      if (timeoutMs !== undefined) cases.push(elapses(clock, timeoutMs, over.signal).then(() => false))
      const onAbort = Promise.withResolvers<boolean>()
      const abort = () => onAbort.reject(signal?.reason)
      signal?.addEventListener('abort', abort, { once: true })
      cases.push(onAbort.promise)
      waiters.add(waiter)
      unsubscribe ??= cache.onAdvance(check)
      try {
        return await Promise.race(cases)
      } finally {
        over.abort()
        signal?.removeEventListener('abort', abort)
        waiters.delete(waiter)
        unlisten()
      }
    },
    clear(owner) {
      owners.delete(owner)
      check()
    },
    get size() {
      return owners.size
    },
  }
}
