import type { KubeObject } from '../kube/object.ts'
import type { Store } from '../kube/store.ts'

/**
 * The memory of this process about the objects in a cache, as one record for each. A record is created when it is first
 * asked for, and ends as a whole when its object is deleted, so no part of it can be forgotten or left behind. Records
 * belong to uids: an object that is created again under its name inherits nothing. A record outlives the terms of a
 * leader. A pass that still has the record of a deleted object writes to something that no other pass will see.
 */
export interface Records<R> {
  /** Returns the record of the object that the cache shows under this key; undefined: it shows none. */
  at(key: string): R | undefined
  /** Returns the key of the object with this uid, if it has a record. */
  keyOf(uid: string): string | undefined
}

/**
 * @param create `life` fires when the object is deleted: a part that keeps something outside of its record, such as an
 *   entry in a store, removes it then.
 */
export function createRecords<T extends KubeObject, R>(
  store: Pick<Store<T>, 'get' | 'subscribe'>,
  create: (object: T, life: AbortSignal) => R,
): Records<R> {
  const byUid = new Map<
    string,
    { readonly key: string; readonly record: R; readonly life: AbortController }
  >()
  // Here and not in a pass: a new object of the same name may exist before the next pass, and a standby makes no passes.
  store.subscribe(({ type, object: { metadata } }) => {
    if (type !== 'deleted') return
    byUid.get(metadata.uid)?.life.abort(new Error(`${metadata.name} was deleted`))
    byUid.delete(metadata.uid)
  })
  return {
    at(key) {
      const object = store.get(key)
      if (object === undefined) return undefined
      const { uid } = object.metadata
      const known = byUid.get(uid)
      if (known !== undefined) return known.record
      const life = new AbortController()
      const record = create(object, life.signal)
      byUid.set(uid, { key, record, life })
      return record
    },
    keyOf: uid => byUid.get(uid)?.key,
  }
}
