/** A client that notes its own writes, so that the next pass waits until the caches show them. */
import type { Api } from './api-types.ts'
import type { CacheView, ConsistencyStore } from './consistency.ts'
import { isKubeError } from './errors.ts'
import { type KubeObject, keyOfRef } from './object.ts'
import { type Resource, resourceName } from './resources.ts'

export interface TrackedOptions {
  readonly consistency: Pick<ConsistencyStore, 'wrote' | 'deleted'>
  readonly cache: CacheView
  /** The key for which writes are noted. */
  readonly owner: string
}

/**
 * Returns the same client, whose writes of cached resources are noted in `consistency` for one owner. `request`, and
 * deletions of objects that the cache does not know, are not noted.
 */
export function tracked(api: Api, { consistency, cache, owner }: TrackedOptions): Api {
  const noted = async <T extends KubeObject>(
    resource: Resource<T>,
    isDry: boolean | undefined,
    answer: Promise<T>,
  ): Promise<T> => {
    const object = await answer
    const name = resourceName(resource)
    if (!isDry && cache.covers(name)) consistency.wrote(owner, name, object.metadata.resourceVersion)
    return object
  }
  return {
    ...api,
    create: (resource, body, options) =>
      noted(resource, options?.dryRun, api.create(resource, body, options)),
    patch: (resource, ref, patch, options) =>
      noted(resource, options?.dryRun, api.patch(resource, ref, patch, options)),
    replace: (resource, ref, body, options) =>
      noted(resource, options?.dryRun, api.replace(resource, ref, body, options)),
    async delete(resource, ref, query, options) {
      const name = resourceName(resource)
      // Before the call: its event may come before its answer.
      const last = cache.covers(name) ? cache.get(name, keyOfRef(ref)) : undefined
      try {
        await api.delete(resource, ref, query, options)
      } catch (error) {
        if (last && isKubeError(error, 'NotFound')) consistency.deleted(owner, name, last)
        throw error
      }
      if (last && !query?.dryRun) consistency.deleted(owner, name, last)
    },
  }
}
