/**
 * The indexed cache of one resource. Readers share the objects. They are immutable by type and by convention, and
 * `createStore({ freeze: true })` makes a violation throw in tests.
 */
import { type KubeObject, keyOf } from './object.ts'

export type Change<T> =
  /** `initial`: part of the first complete list, so it says nothing about when the object was created. */
  | { readonly type: 'added'; readonly object: T; readonly old?: undefined; readonly initial: boolean }
  | { readonly type: 'updated'; readonly object: T; readonly old: T; readonly initial: boolean }
  /** `object` is the last known state, which may be older than the deleted state. */
  | { readonly type: 'deleted'; readonly object: T; readonly old: T; readonly initial: boolean }

/** The readers' view of a store. */
export interface Store<T extends KubeObject> {
  /** By `keyOf`: `namespace/name` or `name`. */
  get(key: string): T | undefined
  /** All objects, in no order. */
  list(): readonly T[]
  /**
   * The objects that the index puts under `value`, in no order.
   * @throws TypeError for an index that the store was not created with.
   */
  by(index: string, value: string): readonly T[]
  readonly size: number
  /** The version up to which this cache has seen everything. 0n before the first list. */
  resourceVersion(): bigint
  /**
   * Calls `subscriber` for every change after this moment, in order, when the store already shows the new state.
   * Subscribers are called synchronously, so they must only take note (enqueue a key).
   * @returns the function that ends the subscription.
   */
  subscribe(subscriber: (change: Change<T>) => void): () => void
  /**
   * Calls `listener`, which must not throw, whenever `resourceVersion()` has moved. That includes bookmarks, which come
   * without any change.
   * @returns the function that ends the subscription.
   */
  onAdvance(listener: () => void): () => void
}

/**
 * The writer's view of a store. All methods notify every subscriber, even if one throws, and leave the store complete;
 * afterwards they throw an AggregateError of the subscribers' errors.
 */
export interface MutableStore<T extends KubeObject> extends Store<T> {
  /** Adds or updates. Another uid under the same key is a delete of the old object and an add of the new one. */
  upsert(object: T): void
  /** Removes by key; unknown keys are ignored. `last` is the final state, if known and of the same uid. */
  remove(key: string, last?: T): void
  /** Makes the store equal to a complete list taken at `resourceVersion`, and announces the differences. */
  replace(objects: Iterable<T>, resourceVersion: bigint): void
  /** Records that everything up to `resourceVersion` has been seen. */
  advance(resourceVersion: bigint): void
}

export interface StoreOptions<T> {
  /** Each index maps an object to the values under which it is found. */
  readonly indexes?: Readonly<Record<string, (object: T) => readonly string[]>>
  /** Freeze stored objects deeply, so that a reader that writes fails at once. For tests and development. */
  readonly freeze?: boolean
}

export function createStore<T extends KubeObject>(options: StoreOptions<T> = {}): MutableStore<T> {
  const objects = new Map<string, T>()
  const indexers = Object.entries(options.indexes ?? {})
  const indexes = new Map(indexers.map(([name]) => [name, new Map<string, Map<string, T>>()]))
  const subscribers = new Set<(change: Change<T>) => void>()
  const listeners = new Set<() => void>()
  let version = 0n
  let filled = false

  const reach = (next: bigint) => {
    version = next
    for (const listener of [...listeners]) listener()
  }

  const unindex = (key: string, object: T) => {
    for (const [name, valuesOf] of indexers) {
      const index = indexes.get(name)
      for (const value of valuesOf(object)) {
        const bucket = index?.get(value)
        bucket?.delete(key)
        if (bucket?.size === 0) index?.delete(value)
      }
    }
  }

  const index = (key: string, object: T) => {
    for (const [name, valuesOf] of indexers) {
      const index = indexes.get(name)
      for (const value of valuesOf(object)) {
        const bucket = index?.get(value)
        if (bucket) bucket.set(key, object)
        else index?.set(value, new Map([[key, object]]))
      }
    }
  }

  const write = (key: string, object: T | undefined) => {
    const old = objects.get(key)
    if (old) unindex(key, old)
    if (!object) {
      objects.delete(key)
      return
    }
    if (options.freeze) freezeDeep(object)
    objects.set(key, object)
    index(key, object)
  }

  // The store announces each change when it shows the state after it. `errors` collects the subscribers' errors until
  // the end: one bad subscriber must not cost another one an event.
  const change = (key: string, next: Change<T>, errors: unknown[]) => {
    write(key, next.type === 'deleted' ? undefined : next.object)
    for (const subscriber of [...subscribers]) {
      try {
        subscriber(next)
      } catch (error) {
        errors.push(error)
      }
    }
  }

  const put = (object: T, initial: boolean, errors: unknown[]) => {
    const key = keyOf(object)
    const old = objects.get(key)
    if (old && old.metadata.uid === object.metadata.uid) {
      // A relist repeats known objects.
      if (old.metadata.resourceVersion === object.metadata.resourceVersion) return
      change(key, { type: 'updated', object, old, initial }, errors)
      return
    }
    // Deleted and recreated under the same name between two observations: the deletion must not be missed.
    if (old) change(key, { type: 'deleted', object: old, old, initial }, errors)
    change(key, { type: 'added', object, initial }, errors)
  }

  const drop = (key: string, last: T | undefined, errors: unknown[]) => {
    const old = objects.get(key)
    if (!old) return
    const object = last?.metadata.uid === old.metadata.uid ? last : old
    if (options.freeze) freezeDeep(object)
    change(key, { type: 'deleted', object, old, initial: false }, errors)
  }

  const reporting = (act: (errors: unknown[]) => void) => {
    const errors: unknown[] = []
    act(errors)
    if (errors.length > 0) throw new AggregateError(errors, `${errors.length} subscriber call(s) failed`)
  }

  return {
    get: key => objects.get(key),
    list: () => [...objects.values()],
    by(name, value) {
      const index = indexes.get(name)
      if (!index) throw new TypeError(`the store has no index ${JSON.stringify(name)}`)
      return [...(index.get(value)?.values() ?? [])]
    },
    get size() {
      return objects.size
    },
    resourceVersion: () => version,
    subscribe(subscriber) {
      // A separate wrapper, so that the same function subscribed twice is called twice and ends once each.
      const own = (next: Change<T>) => subscriber(next)
      subscribers.add(own)
      return () => {
        subscribers.delete(own)
      }
    },
    onAdvance(listener) {
      const own = () => listener()
      listeners.add(own)
      return () => {
        listeners.delete(own)
      }
    },
    upsert: object => reporting(errors => put(object, false, errors)),
    remove: (key, last) => reporting(errors => drop(key, last, errors)),
    replace: (list, resourceVersion) =>
      reporting(errors => {
        const initial = !filled
        filled = true
        const next = new Map<string, T>()
        for (const object of list) next.set(keyOf(object), object)
        for (const key of [...objects.keys()]) if (!next.has(key)) drop(key, undefined, errors)
        for (const object of next.values()) put(object, initial, errors)
        reach(resourceVersion)
      }),
    advance(resourceVersion) {
      if (resourceVersion > version) reach(resourceVersion)
    },
  }
}

function freezeDeep(value: unknown): void {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return
  Object.freeze(value)
  for (const inner of Object.values(value)) freezeDeep(inner)
}
