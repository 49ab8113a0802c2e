import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { startControlPlane } from '../../playground/control-plane.ts'
import { type Api, createApi } from '../../src/kube/api.ts'
import { type Clock, systemClock } from '../../src/kube/clock.ts'
import { type Connection, loadConnection } from '../../src/kube/connection.ts'
import { isKubeError } from '../../src/kube/errors.ts'
import { listAll } from '../../src/kube/list-all.ts'
import { silentLog } from '../../src/kube/log.ts'
import { keyOf } from '../../src/kube/object.ts'
import { seededRandom } from '../../src/kube/random.ts'
import { createReflector } from '../../src/kube/reflector.ts'
import { type ConfigMap, configMaps, namespaces } from '../../src/kube/resources.ts'
import { createStore } from '../../src/kube/store.ts'
import { collect } from '../../src/kube/testing/collect.ts'
import { type FaultProxy, startFaultProxy, watching } from './fault-proxy.ts'
import { adminKubeconfig } from './lib/plane.ts'

const patience = { interval: 20 }

/** Mirrors the config maps of one namespace through `connection`. */
function startMirror(
  connection: Connection,
  namespace: string,
  { idleTimeoutMs, clock = systemClock }: { idleTimeoutMs?: number; clock?: Clock } = {},
) {
  const api = createApi({ connection, userAgent: 'kit-test/1' })
  const store = createStore<ConfigMap>({
    indexes: { team: o => [o.metadata.labels?.['team'] ?? []].flat() },
    freeze: true,
  })
  const changes: string[] = []
  store.subscribe(({ type, object }) =>
    changes.push(`${type} ${object.metadata.name} ${object.metadata.uid}`),
  )
  const counts: Record<string, number> = {}
  const count = (name: string) => {
    counts[name] = (counts[name] ?? 0) + 1
  }
  const reflector = createReflector<ConfigMap>({
    api,
    resource: configMaps,
    query: { namespace },
    store,
    clock,
    random: seededRandom(1),
    log: silentLog,
    idleTimeoutMs,
    metrics: {
      list: () => count('lists'),
      watch: () => count('watches'),
      event: (_, type) => count(type),
      error: (_, code) => count(code),
    },
  })
  const stop = new AbortController()
  const running = reflector.run(stop.signal)
  return {
    store,
    changes,
    counts,
    synced: () => reflector.synced(AbortSignal.timeout(30_000)),
    async close() {
      stop.abort()
      await running
      await api.close()
    },
  }
}
type Mirror = ReturnType<typeof startMirror>

/** Waits until the mirror equals the server's state, object by object and version by version. */
async function equalToServer(mirror: Mirror, api: Api, namespace: string) {
  const { objects } = await listAll(api, configMaps, { namespace })
  const shape = (list: readonly ConfigMap[]) =>
    list.map(o => `${keyOf(o)} ${o.metadata.uid} ${o.metadata.resourceVersion}`).sort()
  await vi.waitFor(() => expect(shape(mirror.store.list())).toEqual(shape(objects)), patience)
}

const configMap = (namespace: string, name: string, fields: { data?: object; labels?: object } = {}) => ({
  metadata: { name, namespace, labels: fields.labels },
  data: fields.data ?? {},
})

describe('against a healthy server, through a network with faults', () => {
  let connection: Connection
  let api: Api
  let proxy: FaultProxy
  let namespace: string
  let mirror: Mirror

  beforeAll(async () => {
    connection = await loadConnection({ kubeconfig: adminKubeconfig() })
    api = createApi({ connection, userAgent: 'kit-test/1' })
  })
  afterAll(() => api.close())
  beforeEach(async () => {
    namespace = (await api.create(namespaces, { metadata: { generateName: 'kit-reflector-' } })).metadata.name
    proxy = await startFaultProxy(connection)
    for (const name of ['a', 'b']) await api.create(configMaps, configMap(namespace, name))
    mirror = startMirror(proxy.connection, namespace)
    await mirror.synced()
  })
  afterEach(async () => {
    await mirror.close()
    await proxy.close()
    await api.delete(namespaces, { name: namespace })
  })

  test('mirrors, indexes, and knows how far it has seen', async () => {
    const made = await api.create(configMaps, configMap(namespace, 'c', { labels: { team: 'red' } }))
    await vi.waitFor(() => expect(mirror.store.by('team', 'red')).toHaveLength(1), patience)
    expect(mirror.store.resourceVersion()).toBeGreaterThanOrEqual(BigInt(made.metadata.resourceVersion))
    expect(mirror.store.get(`${namespace}/c`)?.metadata.managedFields).toBeUndefined()
    await api.delete(configMaps, { namespace, name: 'c' })
    await vi.waitFor(() => expect(mirror.store.by('team', 'red')).toHaveLength(0), patience)
    expect(mirror.counts).toMatchObject({ lists: 1, watches: 1 })
  })

  test('a dropped watch costs nothing but the pause: no list, no event twice, none missed', async () => {
    proxy.dropWatch()
    const made = await api.create(configMaps, configMap(namespace, 'c'))
    await equalToServer(mirror, api, namespace)
    expect(mirror.counts).toMatchObject({ lists: 1, watches: 2 })
    expect(mirror.changes.filter(change => change.includes(made.metadata.uid))).toHaveLength(1)
  })

  test('a half-open connection is given up', async () => {
    await mirror.close()
    mirror = startMirror(proxy.connection, namespace, { idleTimeoutMs: 2_000 })
    await mirror.synced()
    const silence = proxy.halfOpen(watching('configmaps'))
    await api.create(configMaps, configMap(namespace, 'c'))
    await vi.waitFor(() => expect(mirror.counts['Unavailable']).toBeGreaterThan(0), patience)
    expect(mirror.store.get(`${namespace}/c`)).toBeUndefined()
    silence.end()
    await equalToServer(mirror, api, namespace)
  })

  test('a delayed watch is late, not wrong', async () => {
    const delay = proxy.delayWatch(watching('configmaps'))
    await api.delete(configMaps, { namespace, name: 'a' })
    const second = await api.create(configMaps, configMap(namespace, 'a'))
    await vi.waitFor(() => expect(delay.hits).toBeGreaterThan(0), patience)
    const first = mirror.store.get(`${namespace}/a`)
    expect(first?.metadata.uid).not.toBe(second.metadata.uid)
    delay.end()
    await equalToServer(mirror, api, namespace)
    expect(mirror.changes.slice(-2)).toEqual([
      `deleted a ${first?.metadata.uid}`,
      `added a ${second.metadata.uid}`,
    ])
  })

  test('expired while away: listed again, the death of an earlier uid included', async () => {
    const first = mirror.store.get(`${namespace}/a`)?.metadata.uid
    proxy.status(410, { match: r => r.watch && !r.query.has('sendInitialEvents'), reason: 'Expired' })
    proxy.dropWatch()
    await api.delete(configMaps, { namespace, name: 'a' })
    const second = await api.create(configMaps, configMap(namespace, 'a'))
    await equalToServer(mirror, api, namespace)
    expect(mirror.counts).toMatchObject({ lists: 2, Gone: 1 })
    expect(mirror.changes.slice(-2)).toEqual([`deleted a ${first}`, `added a ${second.metadata.uid}`])
  })

  test('under constant faults it is equal to the server in the end', async () => {
    await mirror.close()
    // Pauses are shortened to a fortieth, so that the mirror meets many faults while objects change.
    const clock = {
      ...systemClock,
      sleep: (ms: number, signal?: AbortSignal) => systemClock.sleep(ms / 40, signal),
    }
    mirror = startMirror(proxy.connection, namespace, { clock })
    await mirror.synced()
    const random = seededRandom(42)
    const one = <T>(of: readonly T[]): T => of[Math.floor(random.next() * of.length)] as T
    const names = ['a', 'b', 'c', 'd', 'e']
    const faults = [
      () => proxy.dropWatch(),
      () => proxy.status(one([429, 500, 503]), { match: watching('configmaps'), retryAfterSeconds: 0 }),
      () =>
        proxy.status(410, { match: r => r.watch && !r.query.has('sendInitialEvents'), reason: 'Expired' }),
      () => proxy.loseResponse(1, watching('configmaps')),
      () => setTimeout(proxy.delayWatch().end, 100),
    ]
    for (let i = 0; i < 400; i++) {
      const name = one(names)
      const ref = { namespace, name }
      try {
        await one([
          () => api.create(configMaps, configMap(namespace, name)),
          () => api.patch(configMaps, ref, { type: 'merge', body: { data: { i: String(i) } } }),
          () => api.delete(configMaps, ref),
        ])()
      } catch (error) {
        // The walk is random, so half of its steps are impossible.
        if (!isKubeError(error, 'NotFound', 'AlreadyExists')) throw error
      }
      if (random.next() < 0.2) one(faults)()
    }
    proxy.heal()
    await equalToServer(mirror, api, namespace)
    // It has met faults; how many fit into the walk depends on the machine.
    expect(mirror.counts['watches']).toBeGreaterThan(1)
    // The sequence of changes is consistent: no object is added twice, or deleted before it was added.
    const alive = new Map<string, string>()
    for (const change of mirror.changes) {
      const [type, name = '', uid = ''] = change.split(' ')
      if (type === 'added') expect(alive.get(name)).toBeUndefined()
      else expect(alive.get(name)).toBe(uid)
      if (type === 'deleted') alive.delete(name)
      else alive.set(name, uid)
    }
  })
})

test('over a restart of a server that does not stream lists', async () => {
  const controlPlane = await startControlPlane({ apiserverArgs: ['--feature-gates=WatchList=false'] })
  const connection = await loadConnection({ kubeconfig: controlPlane.kubeconfigPath })
  const api = createApi({ connection, userAgent: 'kit-test/1' })
  const mirror = startMirror(connection, 'default')
  try {
    await mirror.synced()
    expect(mirror.counts).toMatchObject({ lists: 1, Invalid: 1 })
    const first = await api.create(configMaps, configMap('default', 'a'))
    await equalToServer(mirror, api, 'default')
    for (const how of ['SIGKILL', 'SIGTERM'] as const) {
      await controlPlane.stopApiserver(how)
      await controlPlane.startApiserver()
      await api.create(configMaps, configMap('default', `after-${how.toLowerCase()}`))
      await equalToServer(mirror, api, 'default')
    }
    // The restarted server's watch history does not reach back to the beginning.
    const tooOld = collect(
      api.watch(configMaps, {
        namespace: 'default',
        resourceVersion: first.metadata.resourceVersion,
        timeoutSeconds: 5,
      }),
    )
    await expect(tooOld).rejects.toMatchObject({ code: 'Gone' })
    expect(mirror.changes).not.toContain(`deleted a ${first.metadata.uid}`)
  } finally {
    await mirror.close()
    await api.close()
    await controlPlane.stop()
  }
})
