/**
 * A complete operator built only on src/kube: for every ConfigMap labelled `toy=greeting` it maintains another one,
 * `<name>-out`, that greets `data.who`. Several replicas may run side by side: one leads, the others are warm standbys.
 */
import { createApi } from '../../src/kube/api.ts'
import { systemClock as clock } from '../../src/kube/clock.ts'
import { loadConnection } from '../../src/kube/connection.ts'
import { cacheView, createConsistencyStore } from '../../src/kube/consistency.ts'
import {
  createController,
  type ReconcileContext,
  RetryLater,
  TerminalError,
} from '../../src/kube/controller.ts'
import { createElector } from '../../src/kube/election.ts'
import { createHealthServer, syncedCheck } from '../../src/kube/health.ts'
import { silentLog as log } from '../../src/kube/log.ts'
import { createMetrics } from '../../src/kube/metrics.ts'
import { keyOf, refOfKey } from '../../src/kube/object.ts'
import { createQueue } from '../../src/kube/queue.ts'
import { systemRandom as random } from '../../src/kube/random.ts'
import { createRecorder, referenceTo } from '../../src/kube/recorder.ts'
import { createReflector } from '../../src/kube/reflector.ts'
import { type ConfigMap, configMaps } from '../../src/kube/resources.ts'
import { createStore } from '../../src/kube/store.ts'

const name = 'toy'
const kit = { name, clock, random, log }

export async function runToy(kubeconfig: string, namespace: string, identity: string, signal: AbortSignal) {
  const metrics = createMetrics({ process: false })
  const api = createApi({ connection: await loadConnection({ kubeconfig }), metrics: metrics.api })
  const store = createStore<ConfigMap>({ freeze: true })
  const query = { namespace }
  const reflector = createReflector({ ...kit, api, resource: configMaps, query, store })
  const queue = createQueue({ ...kit, metrics: metrics.queue })
  const consistency = createConsistencyStore({ ...kit, cache: cacheView({ configmaps: store }) })
  const recorder = createRecorder({ ...kit, api, component: name, instance: identity })
  store.subscribe(({ object }) => queue.add(keyOf(object).replace(/-out$/, '')))

  const reconcile = async (key: string, { signal }: ReconcileContext) => {
    if (!(await consistency.waitReady(key, signal, 1000))) throw new RetryLater(100, 'the cache lags')
    const map = store.get(key)
    if (map?.metadata.labels?.['toy'] !== 'greeting') return consistency.clear(key)
    if (!map.data?.['who']) throw new TerminalError('data.who is missing')
    const text = `Hello, ${map.data['who']}`
    if (store.get(`${key}-out`)?.data?.['text'] === text) return
    const regarding = referenceTo(configMaps, map)
    const { apiVersion, kind, uid } = regarding
    const ownerReferences = [{ apiVersion, kind, name: regarding.name, uid, controller: true }]
    const out = { ...refOfKey(key), name: `${regarding.name}-out` }
    const body = { apiVersion, kind, metadata: { name: out.name, ownerReferences }, data: { text } }
    const written = await api.patch(configMaps, out, { type: 'apply', body }, { force: true, signal })
    consistency.wrote(key, 'configmaps', written.metadata.resourceVersion)
    recorder.record({ regarding, type: 'Normal', reason: 'Greeted', action: 'Greet', note: text })
  }

  const controller = createController({ ...kit, queue, reconcile, workers: 2, metrics: metrics.controller })
  const elector = createElector({ ...kit, api, namespace, identity, metrics: metrics.election })
  const ready = { caches: syncedCheck({ configmaps: reflector }) }
  const health = await createHealthServer({ ...kit, port: 0, live: {}, ready })
  const mirrored = new AbortController()
  const mirror = reflector.run(mirrored.signal)
  await reflector.synced(signal)
  const lead = async () => {
    await elector.run({ onStarted: (stop, lost) => controller.run(stop, lost), signal })
    await recorder.flush(AbortSignal.timeout(5000))
    mirrored.abort()
    await Promise.all([mirror, health.close()])
    await api.close()
  }
  return { elector, metrics, health, ended: lead() }
}
