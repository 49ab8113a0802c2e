import { EventEmitter, on } from 'node:events'
import { describe, expect, it } from 'vitest'
import type { BackupPodSet } from '../api/backuppodset.ts'
import { containerIdsOf } from '../api/pod-contract.ts'
import type { CallOptions, WatchEvent } from '../kube/api-types.ts'
import { type Cache, createCacheSet } from '../kube/cache-set.ts'
import { systemClock as clock } from '../kube/clock.ts'
import { KubeError } from '../kube/errors.ts'
import { silentLog } from '../kube/log.ts'
import { type KubeObject, keyOf } from '../kube/object.ts'
import { seededRandom } from '../kube/random.ts'
import type { Pod, Resource } from '../kube/resources.ts'
import { createCaches, withoutBallast } from './caches.ts'

it('D7.ids: what the cache keeps of a pod still says which containers have the memory of its slot', () => {
  const status = (name: string) => ({
    ...{ name, image: '', imageID: '', ready: true, restartCount: 0 },
    containerID: `containerd://${name}`,
  })
  const pod: Pod = {
    metadata: { name: 'p', uid: 'p', resourceVersion: '1', managedFields: [{}] },
    spec: {
      nodeName: 'n',
      containers: [
        { name: 'app', image: 'web:1', env: [{ name: 'SECRET', value: 'long' }] },
        { name: 'side', image: 'web:1' },
      ],
    },
    status: { containerStatuses: [status('app'), status('side')] },
  }
  const kept = withoutBallast(pod)
  expect(containerIdsOf(kept)).toBe('app=containerd://app,side=containerd://side')
  expect(kept.spec).toEqual({ nodeName: 'n', containers: [{ name: 'app' }, { name: 'side' }] })
  expect(kept.metadata.managedFields).toBeUndefined()
})

it('R20: and whose token opens its gate', () => {
  const command = ['/waker', 'wait', '--token-sha256', 'abc']
  const kept = withoutBallast({
    metadata: { name: 'p', uid: 'p', resourceVersion: '1' },
    spec: {
      containers: [],
      initContainers: [
        { name: 'understudy-gate', image: 'waker', command, restartPolicy: 'Always' },
        { name: 'setup', image: 'web:1', command: ['long'] },
      ],
    },
  })
  expect(kept.spec?.initContainers).toEqual([
    { name: 'understudy-gate', command, restartPolicy: 'Always' },
    { name: 'setup' },
  ])
})

it('D6.claims: and which claims it has', () => {
  const claim = { name: 'data', persistentVolumeClaim: { claimName: 'data' } }
  const volumes = [claim, { name: 'scratch', emptyDir: {} }]
  const kept = withoutBallast({
    metadata: { name: 'p', uid: 'p', resourceVersion: '1' },
    spec: { containers: [], volumes },
  })
  expect(kept.spec?.volumes).toEqual([claim])
})

describe('D6.caches: what sets with memory need', () => {
  const added = new EventEmitter()
  const add = async (cache: Cache<KubeObject>, object: KubeObject) => {
    added.emit(cache.resource.plural, object)
    await expect.poll(() => cache.get(keyOf(object))).toBeDefined()
  }
  /** An API server that forbids Nodes, never ends its list of Services, and is empty otherwise. */
  const api = {
    list: async () => ({ items: [], metadata: { resourceVersion: '1' } }),
    async *watch<T extends KubeObject>(
      { plural }: Resource<T>,
      _: unknown,
      options?: CallOptions,
    ): AsyncIterable<WatchEvent<T>> {
      if (plural === 'nodes') throw new KubeError('Forbidden', 'nodes is forbidden')
      if (plural !== 'services')
        yield { type: 'BOOKMARK', resourceVersion: '1', initialEventsEnd: true } as const
      for await (const [object] of on(added, plural, options)) yield { type: 'ADDED', object } as const
    },
  }
  const start = async (memoryNamespaces: 'labelled' | 'all') => {
    const set = createCacheSet({ api, clock, random: seededRandom(1), log: silentLog })
    const caches = createCaches(set, { memoryNamespaces })
    const stop = new AbortController()
    const running = set.run(stop.signal)
    await expect.poll(() => caches.missingForMemory().length).toBe(2)
    await expect.poll(() => caches.missingForMemory()[0]?.why).toBeDefined()
    const end = async () => {
      stop.abort()
      await running
    }
    return { caches, end, ready: set.isSynced, fresh: set.isFresh(120_000) }
  }
  const setIn = (namespace: string, checkpoint?: object) =>
    ({
      metadata: { name: 'web', namespace, uid: namespace, resourceVersion: '2' },
      spec: { checkpoint },
    }) as BackupPodSet

  it('is named where it never comes, with what the API server says', async () => {
    const { caches, end } = await start('all')
    expect(caches.missingForMemory()).toEqual([
      { resource: 'Nodes', why: 'nodes is forbidden' },
      { resource: 'Services', why: undefined },
    ])
    await end()
  })

  it('makes the operator not ready, by its name, once there is such a set', async () => {
    const { caches, ready, fresh, end } = await start('all')
    await add(caches.stores.sets, setIn('a'))
    await add(caches.stores.sets, setIn('b', { source: 'http' }))
    expect([ready(), fresh()]).toEqual([undefined, undefined])
    await add(caches.stores.sets, setIn('c', {}))
    expect(ready()).toBe('not synced yet: nodes, services')
    expect(fresh()).toBe('no update for too long: nodes, services')
    await end()
  })

  it('is no demand of a namespace that may have no memory', async () => {
    const { caches, ready, end } = await start('labelled')
    const { permitted, sets } = caches.stores
    if (permitted === 'everywhere') throw new Error('labelled')
    await add(sets, setIn('c', {}))
    expect(ready()).toBeUndefined()
    await add(permitted, { metadata: { name: 'c', uid: 'c', resourceVersion: '2' } })
    expect(ready()).toBe('not synced yet: nodes, services')
    await end()
  })
})

it('a process leads only when it knows which pods move: a leader without Migrations would call them off', async () => {
  const known = Promise.withResolvers<void>()
  const api = {
    list: async () => ({ items: [], metadata: { resourceVersion: '1' } }),
    async *watch<T extends KubeObject>(
      { plural }: Resource<T>,
      _: unknown,
      options?: CallOptions,
    ): AsyncIterable<WatchEvent<T>> {
      if (plural === 'migrations') await known.promise
      yield { type: 'BOOKMARK', resourceVersion: '1', initialEventsEnd: true } as const
      for await (const _ of on(new EventEmitter(), 'never', options)) return
    },
  }
  const set = createCacheSet({ api, clock, random: seededRandom(1), log: silentLog })
  const { missingForMemory } = createCaches(set, { memoryNamespaces: 'all' })
  const stop = new AbortController()
  const running = set.run(stop.signal)
  let mayLead = false
  const leads = set.awaited(stop.signal).then(() => {
    mayLead = true
  })
  await expect.poll(() => missingForMemory().length).toBe(0)
  await clock.sleep(50, stop.signal)
  expect(mayLead).toBe(false)
  known.resolve()
  await leads
  stop.abort()
  await running
})
