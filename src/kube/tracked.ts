/** A client that notes its own writes, so that the next pass waits until the caches show them. */
import type { Api } from './api-types.ts'
import type { ConsistencyStore } from './consistency.ts'
import { isKubeError } from './errors.ts'
import { type KubeObject, keyOfRef, type ObjectRef } from './object.ts'
import { type Resource, resourceName } from './resources.ts'

export interface TrackedOptions {
  readonly consistency: Pick<ConsistencyStore, 'cache' | 'wrote' | 'deleted'>
  /** The key for which writes are noted. */
  readonly owner: string
  /** Deletions of these resources are not noted: the controller looks through them itself. */
  readonly untrackedDeletions?: readonly Resource<KubeObject>[] | undefined
}

/**
 * Returns the same client, which notes its writes in `consistency` for one owner, as far as the caches will show them.
 * After a write whose outcome is unknown, it notes the object as the next `get` finds it. It does not note `request`,
 * and deletions of objects that no cache has.
 */
export function tracked(api: Api, { consistency, owner, untrackedDeletions = [] }: TrackedOptions): Api {
  const { cache } = consistency
  /** Objects with a write whose outcome is unknown. */
  const unsettled = new Set<string>()
  const idOf = (resource: Resource<KubeObject>, ref: ObjectRef) =>
    `${resourceName(resource)}/${keyOfRef(ref)}`

  const note = (resource: Resource<KubeObject>, object: KubeObject) => {
    const name = resourceName(resource)
    if (cache.covers(name, object)) consistency.wrote(owner, name, object.metadata.resourceVersion)
  }
  const write = async <T extends KubeObject>(
    resource: Resource<T>,
    ref: ObjectRef,
    isDry: boolean | undefined,
    send: () => Promise<T>,
  ): Promise<T> => {
    try {
      const object = await send()
      if (!isDry) note(resource, object)
      return object
    } catch (error) {
      if (isKubeError(error) && error.ambiguous) unsettled.add(idOf(resource, ref))
      throw error
    }
  }
  return {
    ...api,
    async get(resource, ref, options) {
      const object = await api.get(resource, ref, options)
      if (unsettled.delete(idOf(resource, ref))) note(resource, object)
      return object
    },
    create(resource, body, options) {
      const { metadata } = body as { readonly metadata?: ObjectRef }
      const ref = { namespace: options?.namespace ?? metadata?.namespace, name: metadata?.name ?? '' }
      return write(resource, ref, options?.dryRun, () => api.create(resource, body, options))
    },
    patch: (resource, ref, patch, options) =>
      write(resource, ref, options?.dryRun, () => api.patch(resource, ref, patch, options)),
    replace: (resource, ref, body, options) =>
      write(resource, ref, options?.dryRun, () => api.replace(resource, ref, body, options)),
    async delete(resource, ref, query, options) {
      const name = resourceName(resource)
      const isNoted = !query?.dryRun && !untrackedDeletions.includes(resource)
      // Read before the call: its event may come before its answer.
      const last = isNoted ? cache.get(name, keyOfRef(ref)) : undefined
      try {
        await api.delete(resource, ref, query, options)
      } catch (error) {
        if (last && isKubeError(error, 'NotFound')) consistency.deleted(owner, name, last)
        throw error
      }
      if (last) consistency.deleted(owner, name, last)
    },
  }
}
