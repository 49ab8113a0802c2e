import type { WatchQuery } from '../../../src/kube/api-types.ts'
import type { KubeObject } from '../../../src/kube/object.ts'
import type { Resource } from '../../../src/kube/resources.ts'
import { namesOf, type World } from './worlds.ts'

export interface Watched {
  readonly name: string
  readonly of: Resource<KubeObject>
  readonly query?: WatchQuery
  /** An object that this watch shows. It is created last, so that all earlier events have arrived. */
  readonly last: Readonly<Record<string, unknown>>
}

/**
 * Starts watches.
 * @returns a function that ends them and returns each watch's events, in order
 */
export async function told(
  { api, namespace, settle }: World,
  watches: readonly Watched[],
): Promise<() => Promise<Record<string, unknown>>> {
  const started = watches.map(({ of, query }) => {
    const names = namesOf(namespace)
    const events: unknown[] = []
    const begun = Promise.withResolvers<void>()
    const follow = async () => {
      for await (const event of api.watch(of, { namespace, ...query, sendInitialEvents: true })) {
        if (event.type === 'BOOKMARK') {
          if (event.initialEventsEnd) begun.resolve()
          continue
        }
        if (event.object.metadata.name.startsWith('last')) return events
        const { metadata, spec, status } = names.look(of, event.object)
        events.push({ type: event.type, metadata, spec, status })
      }
      throw new Error('the watch has ended')
    }
    const all = follow()
    all.catch(begun.reject)
    return { begun: begun.promise, all }
  })
  for (const { begun } of started) await settle(begun)
  return async () => {
    for (const [index, { of, last }] of watches.entries()) {
      const metadata = { ...(last['metadata'] as object), name: `last-${index}` }
      await settle(api.create(of, { ...last, metadata }, { namespace }))
    }
    const heard: Record<string, unknown> = {}
    for (const [index, { name }] of watches.entries())
      heard[name] = await settle(started[index]?.all ?? Promise.resolve([]))
    return heard
  }
}
