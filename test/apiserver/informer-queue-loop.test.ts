/** From a watch event through the queue to the loop, against the real API server. */
import { randomBytes } from 'node:crypto'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { type Api, createApi } from '../../src/kube/api.ts'
import { systemClock as clock } from '../../src/kube/clock.ts'
import { type Connection, loadConnection } from '../../src/kube/connection.ts'
import { createController } from '../../src/kube/controller.ts'
import { silentLog as log } from '../../src/kube/log.ts'
import { keyOf } from '../../src/kube/object.ts'
import { createQueue } from '../../src/kube/queue.ts'
import { systemRandom as random } from '../../src/kube/random.ts'
import { createReflector } from '../../src/kube/reflector.ts'
import { type ConfigMap, configMaps, namespaces } from '../../src/kube/resources.ts'
import { createStore } from '../../src/kube/store.ts'
import { startFaultProxy, watching } from './fault-proxy.ts'
import { adminKubeconfig } from './lib/plane.ts'

let api: Api
let direct: Connection
let namespace: string
beforeEach(async () => {
  direct = await loadConnection({ kubeconfig: adminKubeconfig() })
  api = createApi({ connection: direct, userAgent: 'test/0' })
  namespace = `loop-${randomBytes(4).toString('hex')}`
  await api.create(namespaces, { metadata: { name: namespace } })
})
afterEach(async () => {
  await api.delete(namespaces, { name: namespace }, { propagationPolicy: 'Background' })
  await api.close()
})

const create = (name: string) => api.create(configMaps, { metadata: { name, namespace } }, { namespace })

/** Starts a watch, a queue and one worker that records which version of which object it processed. */
async function startLoop(connection: Connection) {
  const own = createApi({ connection, userAgent: 'test/0' })
  const store = createStore<ConfigMap>()
  const queue = createQueue({ clock, name: 'test' })
  store.subscribe(({ object }) => queue.add(keyOf(object)))
  const reflector = createReflector({
    api: own,
    resource: configMaps,
    query: { namespace },
    store,
    clock,
    random,
    log,
  })
  const mirror = new AbortController()
  const mirrored = reflector.run(mirror.signal)
  await reflector.synced(AbortSignal.timeout(30_000))

  const looked: { name: string; version: string | undefined }[] = []
  const reconcile = async (key: string) => {
    const object = store.get(key)
    looked.push({ name: key.slice(namespace.length + 1), version: object?.metadata.resourceVersion })
  }
  const controller = createController({ name: 'test', queue, reconcile, workers: 1, clock, log, random })
  const stop = new AbortController()
  let loop: Promise<void> | undefined
  return {
    queue,
    store,
    looked,
    work: () => {
      loop = controller.run(stop.signal)
    },
    async [Symbol.asyncDispose]() {
      stop.abort()
      await loop
      mirror.abort()
      await mirrored
      await own.close()
    },
  }
}

/** Returns the last processed version of each object; undefined: the loop saw its deletion. */
const lastLooked = (looked: readonly { name: string; version: string | undefined }[]) =>
  Object.fromEntries(looked.map(({ name, version }) => [name, version]))

test('F07: the loop takes keys in the order of their first event, each once', async () => {
  await using loop = await startLoop(direct)
  const names = ['m', 'c', 'x', 'a', 'q', 'b', 'z', 'k']
  for (const name of names) await create(name)
  // Later events of a waiting key do not move it.
  const last = await api.patch(
    configMaps,
    { namespace, name: 'm' },
    { type: 'merge', body: { data: { again: 'yes' } } },
  )
  await vi.waitFor(() =>
    expect(loop.store.get(`${namespace}/m`)?.metadata.resourceVersion).toBe(last.metadata.resourceVersion),
  )
  loop.work()
  await vi.waitFor(() => expect(loop.looked.map(({ name }) => name)).toEqual(expect.arrayContaining(names)))
  const ours = loop.looked.map(({ name }) => name).filter(name => names.includes(name))
  expect(ours).toEqual(names)
  expect(lastLooked(loop.looked)['m']).toBe(last.metadata.resourceVersion)
})

test('F07: what happens while the watch is cut reaches the loop after the reconnect', async () => {
  await using proxy = disposable(await startFaultProxy(direct))
  for (const name of ['stays', 'changes', 'goes']) await create(name)
  await using loop = await startLoop(proxy.connection)
  loop.work()
  await vi.waitFor(() => expect(lastLooked(loop.looked)).toHaveProperty('goes'))

  const refused = proxy.status(503, { match: watching('configmaps'), count: Number.POSITIVE_INFINITY })
  proxy.dropWatch(watching('configmaps'))
  const changed = await api.patch(
    configMaps,
    { namespace, name: 'changes' },
    { type: 'merge', body: { data: { now: 'other' } } },
  )
  await api.delete(configMaps, { namespace, name: 'goes' })
  const made = await create('comes')
  await vi.waitFor(() => expect(refused.hits).toBeGreaterThan(0))
  // Cut off: the loop cannot know of these changes.
  expect(lastLooked(loop.looked)['changes']).not.toBe(changed.metadata.resourceVersion)
  proxy.heal()

  await vi.waitFor(() =>
    expect(lastLooked(loop.looked)).toMatchObject({
      changes: changed.metadata.resourceVersion,
      comes: made.metadata.resourceVersion,
      goes: undefined,
    }),
  )
})

const disposable = <T extends { close(): Promise<void> }>(it: T) => ({
  ...it,
  [Symbol.asyncDispose]: () => it.close(),
})
