import { expect, it } from 'vitest'
import type { BackupPodSet } from '../api/backuppodset.ts'
import { createFakeClock } from '../kube/clock.ts'
import { cacheView, createConsistencyStore } from '../kube/consistency.ts'
import { silentLog } from '../kube/log.ts'
import { createQueue } from '../kube/queue.ts'
import type { Pod } from '../kube/resources.ts'
import { createStore } from '../kube/store.ts'
import { reconcile } from './reconcile.ts'
import { makeReconcileContext, makeReconcileDeps } from './testing/reconcile.ts'

const current: BackupPodSet = {
  metadata: { name: 'web', namespace: 'default', uid: 'set', resourceVersion: '1' },
  spec: { replicas: 1, template: { spec: { containers: [{ name: 'app', image: 'a' }] } } },
}
const key = 'default/web'

/** A set whose last pass has written version 12 of a pod, and caches of before. */
function behind() {
  const clock = createFakeClock()
  const sets = createStore<BackupPodSet>()
  const pods = createStore<Pod>()
  sets.upsert(current)
  pods.replace([], 11n)
  const consistency = createConsistencyStore({ cache: cacheView({ pods }), clock, log: silentLog })
  consistency.wrote(key, 'pods', '12')
  const queue = createQueue({ clock, name: 'test' })
  class Begun extends Error {}
  const deps = makeReconcileDeps({
    ...{ sets, clock, consistency, queue },
    record: {
      failoverHistory: {
        ...{ note: () => undefined, of: () => [] },
        open() {
          throw new Begun()
        },
      },
    },
  })
  const pass = () =>
    reconcile(deps, key, makeReconcileContext({ priority: 7 })).catch((error: unknown) => {
      if (error instanceof Begun) return 'begun'
      throw error
    })
  return { clock, pods, queue, pass }
}

it('R18: a pass whose own writes the caches do not show ends at once, and the set comes again with them', async () => {
  const { clock, pods, queue, pass } = behind()
  // Time stands, and no cache changes: a pass that waits for either does not end in this turn of the event loop.
  const turn = new Promise(resolve => setImmediate(resolve, 'waits'))
  expect(await Promise.race([pass(), turn])).toEqual({ requeueAfterMs: 5_000 })
  expect(clock.sleepers()).toBe(0)
  expect(queue.depth()).toBe(0)
  pods.advance(12n)
  expect(queue.depth()).toBe(1)
  expect(await queue.take()).toEqual({ key, priority: 7 })
  expect(await pass()).toBe('begun')
})
