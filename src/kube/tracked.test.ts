import { expect, it } from 'vitest'
import { systemClock as clock } from './clock.ts'
import { cacheView, createConsistencyStore } from './consistency.ts'
import { KubeError } from './errors.ts'
import { silentLog as log } from './log.ts'
import type { KubeObject } from './object.ts'
import { configMaps, type Pod, pods, type Resource } from './resources.ts'
import { selectorOf } from './selector.ts'
import { createStore } from './store.ts'
import { createApiServer } from './testing/api-server.ts'
import { createMemoryApi, type Faults } from './testing/memory-api.ts'
import { tracked } from './tracked.ts'

const ref = { namespace: 'ns', name: 'p' }
const seen = { ...ref, labels: { seen: 'yes' } }

function scene(faults: Faults = {}) {
  const server = createApiServer(() => 0)
  const store = createStore<Pod>()
  const labelled = selectorOf({ labelSelector: 'seen' })
  const cache = cacheView({ pods: store }, { pods: labelled })
  const consistency = createConsistencyStore({ cache, clock, log })
  const track = (untrackedDeletions: readonly Resource<KubeObject>[] = []) =>
    tracked(createMemoryApi(server, faults), { consistency, owner: 'o', untrackedDeletions })
  const api = track()
  /** The cache sees everything that has happened. */
  const catchUp = () => store.replace(server.list(pods).filter(labelled), BigInt(server.version))
  return { server, api, track, consistency, catchUp }
}

it('an owner is ready when the cache has seen what was created, changed and deleted for it', async () => {
  const { api, consistency, catchUp } = scene()
  await api.create(pods, { metadata: seen })
  expect(consistency.ready('o')).toBe(false)
  expect(consistency.ready('another')).toBe(true)
  catchUp()
  expect(consistency.ready('o')).toBe(true)
  await api.patch(pods, ref, { type: 'merge', body: { metadata: { labels: { a: 'b' } } } })
  expect(consistency.ready('o')).toBe(false)
  catchUp()
  const pod = await api.get(pods, ref)
  await api.replace(pods, ref, { ...pod, metadata: { ...pod.metadata, labels: { seen: 'still' } } })
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
  server.create(pods, { metadata: seen }, undefined)
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

it('a write that the cache never shows is not waited for; one that takes an object out of it is', async () => {
  const { api, consistency, catchUp } = scene()
  await api.create(pods, { metadata: ref })
  expect(consistency.ready('o')).toBe(true)
  await api.patch(pods, ref, { type: 'merge', body: { metadata: seen } })
  expect(consistency.ready('o')).toBe(false)
  catchUp()
  await api.patch(pods, ref, { type: 'merge', body: { metadata: { labels: { seen: null } } } })
  expect(consistency.ready('o')).toBe(false)
  catchUp()
  expect(consistency.ready('o')).toBe(true)
})

it('a write whose answer is lost is noted when the object is read', async () => {
  const reply = ({ verb }: { readonly verb: string }) => {
    if (verb === 'create') throw new KubeError('Timeout', 'no answer', { ambiguous: true })
  }
  const { api, consistency } = scene({ reply })
  await expect(api.create(pods, { metadata: seen })).rejects.toMatchObject({ ambiguous: true })
  expect(consistency.ready('o')).toBe(true)
  await api.get(pods, ref)
  expect(consistency.ready('o')).toBe(false)
})

it('a controller may look through deletions itself', async () => {
  const { api, consistency, catchUp, track } = scene()
  await api.create(pods, { metadata: seen })
  catchUp()
  await track([pods]).delete(pods, ref)
  expect(consistency.ready('o')).toBe(true)
})
