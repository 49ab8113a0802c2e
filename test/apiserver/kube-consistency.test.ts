import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Api, createApi } from '../../src/kube/api.ts'
import { systemClock } from '../../src/kube/clock.ts'
import { loadConnection } from '../../src/kube/connection.ts'
import { cacheView, createConsistencyStore } from '../../src/kube/consistency.ts'
import { silentLog } from '../../src/kube/log.ts'
import { systemRandom } from '../../src/kube/random.ts'
import { createReflector } from '../../src/kube/reflector.ts'
import { type ConfigMap, configMaps, namespaces, type Pod, pods } from '../../src/kube/resources.ts'
import { createStore } from '../../src/kube/store.ts'
import { adminKubeconfig } from './lib/plane.ts'

let api: Api
let namespace: string
const stop = new AbortController()
const store = createStore<Pod>()
let mirror: Promise<void>

beforeAll(async () => {
  api = createApi({ connection: await loadConnection({ kubeconfig: adminKubeconfig() }) })
  namespace = (await api.create(namespaces, { metadata: { generateName: 'kit-consistency-' } })).metadata.name
  const reflector = createReflector({
    api,
    resource: pods,
    query: { namespace },
    store,
    clock: systemClock,
    random: systemRandom,
    log: silentLog,
  })
  mirror = reflector.run(stop.signal)
  await reflector.synced(stop.signal)
})
afterAll(async () => {
  stop.abort()
  await mirror
  await api.delete(namespaces, { name: namespace })
  await api.close()
})

const setup = () =>
  createConsistencyStore({ cache: cacheView({ pods: store }), clock: systemClock, log: silentLog })
const ref = (name: string) => ({ namespace, name })
const key = (name: string) => `${namespace}/${name}`
const create = (name: string, spec = {}) =>
  api.create(pods, {
    metadata: ref(name),
    spec: { containers: [{ name: 'app', image: 'registry.invalid/app' }], ...spec },
  })

test('after the wait the cache shows what was written, every time', async () => {
  const consistency = setup()
  const written = await create('mine')
  consistency.wrote('owner', 'pods', written.metadata.resourceVersion)
  expect(await consistency.waitReady('owner')).toBe(true)
  expect(store.get(key('mine'))?.metadata.uid).toBe(written.metadata.uid)
  for (let n = 0; n < 100; n++) {
    const body = { metadata: { labels: { n: String(n) } } }
    const patched = await api.patch(pods, ref('mine'), { type: 'merge', body })
    consistency.wrote('owner', 'pods', patched.metadata.resourceVersion)
    expect(await consistency.waitReady('owner')).toBe(true)
    expect(store.get(key('mine'))?.metadata.labels).toEqual({ n: String(n) })
  }
  expect(consistency.size).toBe(0)
})

test('a write that changes nothing is waited for by nobody', async () => {
  const consistency = setup()
  const created = await create('same', {})
  const again = await api.patch(pods, ref('same'), { type: 'merge', body: { metadata: { labels: null } } })
  expect(again.metadata.resourceVersion).toBe(created.metadata.resourceVersion)
  consistency.wrote('owner', 'pods', again.metadata.resourceVersion)
  expect(await consistency.waitReady('owner')).toBe(true)
})

test('the deletion of a pod without a node: marked and removed in two steps, each of which will do', async () => {
  const consistency = setup()
  const pod = await create('unscheduled')
  await api.delete(pods, ref('unscheduled'), { uid: pod.metadata.uid })
  consistency.deleted('owner', 'pods', pod)
  expect(await consistency.waitReady('owner')).toBe(true)
  const shown = store.get(key('unscheduled'))
  expect(shown === undefined || shown.metadata.deletionTimestamp !== undefined).toBe(true)
})

test('an immediate deletion is seen when the object is out of the cache', async () => {
  const maps = createStore<ConfigMap>()
  const end = new AbortController()
  const options = { clock: systemClock, random: systemRandom, log: silentLog }
  const reflector = createReflector({
    api,
    resource: configMaps,
    query: { namespace },
    store: maps,
    ...options,
  })
  const run = reflector.run(end.signal)
  await reflector.synced(end.signal)
  const consistency = createConsistencyStore({ cache: cacheView({ configmaps: maps }), ...options })
  for (let n = 0; n < 20; n++) {
    const made = await api.create(configMaps, { metadata: ref(`map-${n}`) })
    await api.delete(configMaps, ref(`map-${n}`))
    // Perhaps neither event has arrived yet: the object's absence must not count before its creation was seen.
    consistency.deleted('owner', 'configmaps', made)
    expect(await consistency.waitReady('owner')).toBe(true)
    expect(maps.resourceVersion()).toBeGreaterThanOrEqual(BigInt(made.metadata.resourceVersion))
    expect(maps.get(key(`map-${n}`))).toBeUndefined()
  }
  end.abort()
  await run
})

test('a graceful deletion is seen when the pod shows that it is going', async () => {
  const consistency = setup()
  const pod = await create('scheduled', { nodeName: 'nowhere' })
  await api.delete(pods, ref('scheduled'), { uid: pod.metadata.uid })
  consistency.deleted('owner', 'pods', pod)
  expect(await consistency.waitReady('owner')).toBe(true)
  expect(store.get(key('scheduled'))?.metadata.deletionTimestamp).toBeDefined()
  await api.delete(pods, ref('scheduled'), { gracePeriodSeconds: 0 })
})

test('a pod that leaves the selection counts as seen with its own write', async () => {
  const narrow = createStore<Pod>()
  const end = new AbortController()
  const reflector = createReflector({
    api,
    resource: pods,
    query: { namespace, labelSelector: 'in=yes' },
    store: narrow,
    clock: systemClock,
    random: systemRandom,
    log: silentLog,
  })
  const run = reflector.run(end.signal)
  await reflector.synced(end.signal)
  const consistency = createConsistencyStore({
    cache: cacheView({ pods: narrow }),
    clock: systemClock,
    log: silentLog,
  })
  await create('leaver')
  for (const label of ['yes', null]) {
    const body = { metadata: { labels: { in: label } } }
    const { metadata } = await api.patch(pods, ref('leaver'), { type: 'merge', body })
    consistency.wrote('owner', 'pods', metadata.resourceVersion)
    expect(await consistency.waitReady('owner')).toBe(true)
    expect(narrow.size).toBe(label === null ? 0 : 1)
  }
  end.abort()
  await run
})
