import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { type Api, createApi } from '../../src/kube/api.ts'
import { systemClock } from '../../src/kube/clock.ts'
import { loadConnection } from '../../src/kube/connection.ts'
import { referenceTo } from '../../src/kube/event-record.ts'
import { silentLog } from '../../src/kube/log.ts'
import { createRecorder, type RecorderResult } from '../../src/kube/recorder.ts'
import { configMaps, events, namespaces } from '../../src/kube/resources.ts'
import { adminKubeconfig } from './lib/plane.ts'

let api: Api
let namespace: string

beforeAll(async () => {
  api = createApi({ connection: await loadConnection({ kubeconfig: adminKubeconfig() }) })
  namespace = (await api.create(namespaces, { metadata: { generateName: 'kit-recorder-' } })).metadata.name
})
afterAll(async () => {
  await api.delete(namespaces, { name: namespace })
  await api.close()
})

const setup = () => {
  const results: RecorderResult[] = []
  const recorder = createRecorder({
    api,
    component: 'example.com/kit-test',
    instance: 'kit-test-1',
    clock: systemClock,
    log: silentLog,
    metrics: { event: result => results.push(result) },
  })
  return { recorder, results }
}

const configMap = (name: string) => api.create(configMaps, { metadata: { name, namespace } })
const eventsOf = async (uid: string, where = namespace) =>
  (await api.list(events, { namespace: where })).items.filter(event => event.regarding?.uid === uid)

test('the API server takes an event with everything in it', async () => {
  const [about, other] = [await configMap('about'), await configMap('other')]
  const { recorder, results } = setup()
  recorder.record({
    regarding: referenceTo(configMaps, about),
    related: referenceTo(configMaps, other),
    type: 'Warning',
    reason: 'SomethingHappened',
    action: 'DidSomething',
    note: 'for people',
  })
  await recorder.flush()
  expect(results).toEqual(['created'])
  expect(await eventsOf(about.metadata.uid)).toMatchObject([
    {
      type: 'Warning',
      reason: 'SomethingHappened',
      action: 'DidSomething',
      note: 'for people',
      reportingController: 'example.com/kit-test',
      reportingInstance: 'kit-test-1',
      regarding: { kind: 'ConfigMap', name: 'about', namespace },
      related: { kind: 'ConfigMap', name: 'other', namespace },
    },
  ])
})

test('repetitions become a count, whether the event has been made already or not', async () => {
  const about = await configMap('repeated')
  const { recorder } = setup()
  const record = () =>
    recorder.record({
      regarding: referenceTo(configMaps, about),
      type: 'Normal',
      reason: 'Again',
      action: 'Repeat',
      note: 'the same',
    })
  for (let n = 0; n < 3; n++) record()
  await recorder.flush()
  for (let n = 0; n < 4; n++) record()
  await recorder.flush()
  const found = await eventsOf(about.metadata.uid)
  expect(found).toHaveLength(1)
  expect(found[0]?.series?.count).toBe(7)
})

test('the longest texts, and an object without a namespace', async () => {
  const about = await api.get(namespaces, { name: namespace })
  const { recorder, results } = setup()
  recorder.record({
    regarding: referenceTo(namespaces, about),
    type: 'Normal',
    reason: 'R'.repeat(500),
    action: 'A'.repeat(500),
    note: '\u{1F3AD}'.repeat(1000),
  })
  await recorder.flush()
  expect(results).toEqual(['created'])
  expect(await eventsOf(about.metadata.uid, 'default')).toHaveLength(1)
})

test('in a namespace that is going away events are dropped, not repeated for ever', async () => {
  const going = (await api.create(namespaces, { metadata: { generateName: 'kit-recorder-' } })).metadata.name
  const about = await api.create(configMaps, { metadata: { name: 'about', namespace: going } })
  await api.delete(namespaces, { name: going })
  // The admission plugin needs a moment before it refuses objects in the terminating namespace.
  await vi.waitFor(
    () =>
      expect(
        api.create(configMaps, { metadata: { generateName: 'x-', namespace: going } }),
      ).rejects.toThrow(),
    { interval: 50 },
  )
  const { recorder, results } = setup()
  recorder.record({
    regarding: referenceTo(configMaps, about),
    type: 'Normal',
    reason: 'Late',
    action: 'None',
    note: 'too late',
  })
  expect(await recorder.flush()).toBe(0)
  expect(results).toEqual(['dropped_failed'])
})
