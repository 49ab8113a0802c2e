import { expect, it } from 'vitest'
import { systemClock as clock } from './clock.ts'
import { cacheView, createConsistencyStore } from './consistency.ts'
import { silentLog as log } from './log.ts'
import { configMaps, type Pod, pods } from './resources.ts'
import { createStore } from './store.ts'
import { createApiServer } from './testing/api-server.ts'
import { createMemoryApi } from './testing/memory-api.ts'
import { tracked } from './tracked.ts'

const ref = { namespace: 'ns', name: 'p' }

function scene() {
  const server = createApiServer(() => 0)
  const store = createStore<Pod>()
  const cache = cacheView({ pods: store })
  const consistency = createConsistencyStore({ cache, clock, log })
  const api = tracked(createMemoryApi(server), { consistency, cache, owner: 'o' })
  /** The cache sees everything that has happened. */
  const catchUp = () => store.replace(server.list(pods), BigInt(server.version))
  return { server, api, consistency, catchUp }
}

it('an owner is ready when the cache has seen what was created, changed and deleted for it', async () => {
  const { api, consistency, catchUp } = scene()
  await api.create(pods, { metadata: ref })
  expect(consistency.ready('o')).toBe(false)
  expect(consistency.ready('another')).toBe(true)
  catchUp()
  expect(consistency.ready('o')).toBe(true)
  await api.patch(pods, ref, { type: 'merge', body: { metadata: { labels: { a: 'b' } } } })
  expect(consistency.ready('o')).toBe(false)
  catchUp()
  const pod = await api.get(pods, ref)
  await api.replace(pods, ref, { ...pod, metadata: { ...pod.metadata, labels: {} } })
  expect(consistency.ready('o')).toBe(false)
  catchUp()
  expect(consistency.ready('o')).toBe(true)
  await api.delete(pods, ref)
  expect(consistency.ready('o')).toBe(false)
  catchUp()
  expect(consistency.ready('o')).toBe(true)
})

it('a deletion that finds nothing is noted, too; resources without a cache are not', async () => {
  const { server, api, consistency, catchUp } = scene()
  server.create(pods, { metadata: ref }, undefined)
  catchUp()
  server.delete(pods, ref, {}, undefined)
  await expect(api.delete(pods, ref)).rejects.toMatchObject({ code: 'NotFound' })
  expect(consistency.ready('o')).toBe(false)
  catchUp()
  expect(consistency.ready('o')).toBe(true)
  await api.create(configMaps, { metadata: ref })
  await api.delete(configMaps, ref)
  expect(consistency.ready('o')).toBe(true)
})
