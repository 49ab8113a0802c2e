/** A controller of a manager: its sources of keys, and passes whose writes are tracked. */
import { createConsistencyStore } from './consistency.ts'
import { createController } from './controller.ts'
import type { ManagedControllerOptions, Manager, Watch } from './manager-types.ts'
import { keyOf } from './object.ts'
import { controllersIn } from './owner.ts'
import { lowPriority } from './queue.ts'
import { tracked } from './tracked.ts'

export function addController(manager: Omit<Manager, 'controller'>, options: ManagedControllerOptions): void {
  const { for: objects, owns = [], watches = [], backoff, reconcile, ...rest } = options
  const { caches, clock, random, log, metrics } = manager
  const queue = manager.queue({ name: options.name, backoff })
  const consistency = createConsistencyStore({
    cache: caches.view,
    ...{ clock, log, metrics: metrics.consistency },
  })

  const sources: readonly Watch[] = [
    { cache: objects, keysOf: ({ object }) => [keyOf(object)] },
    ...owns.map((cache): Watch => ({ cache, keysOf: change => controllersIn(change, objects.resource) })),
    ...watches,
  ]
  for (const { cache, keysOf } of sources)
    cache.subscribe(change => {
      const priority = change.initial ? lowPriority : 0
      for (const key of keysOf(change)) queue.add(key, { priority })
    })

  const controller = createController({
    ...{ ...rest, queue, clock, random, log, metrics: metrics.controller },
    reconcile: async (key, context) => {
      // A pass on caches from before its last writes would repeat them. Meanwhile the worker handles other keys.
      if (!consistency.ready(key)) {
        consistency.onReady(key, () => queue.add(key, { priority: context.priority }))
        return undefined
      }
      const api = tracked(manager.leaderApi, { consistency, owner: key })
      return (await reconcile(key, { ...context, api })) ?? undefined
    },
  })
  manager.leading((stop, lost) => {
    for (const object of objects.list()) queue.add(keyOf(object), { priority: lowPriority })
    return controller.run(stop, lost)
  })
}
