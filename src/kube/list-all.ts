/** A complete list in pages. */
import type { Api, CallOptions, ListQuery } from './api-types.ts'
import { isKubeError } from './errors.ts'
import type { KubeObject } from './object.ts'
import type { Resource } from './resources.ts'

const pageSize = 500

/**
 * Lists all objects at one point in time, with its resourceVersion. When the continue token expires between two pages
 * (etcd was compacted), the list is taken once more in one piece: a mixture of two points in time would be neither.
 */
export async function listAll<T extends KubeObject>(
  api: Pick<Api, 'list'>,
  resource: Resource<T>,
  query: Pick<ListQuery, 'namespace' | 'labelSelector' | 'fieldSelector'>,
  options?: CallOptions,
): Promise<{ readonly objects: readonly T[]; readonly resourceVersion: string }> {
  const objects: T[] = []
  let next: string | undefined
  for (;;) {
    try {
      const page = await api.list(resource, { ...query, limit: pageSize, continue: next }, options)
      objects.push(...page.items)
      next = page.metadata.continue || undefined
      if (next === undefined) return { objects, resourceVersion: page.metadata.resourceVersion }
    } catch (error) {
      if (next === undefined || !isKubeError(error, 'Gone')) throw error
      const whole = await api.list(resource, query, options)
      return { objects: whole.items, resourceVersion: whole.metadata.resourceVersion }
    }
  }
}
