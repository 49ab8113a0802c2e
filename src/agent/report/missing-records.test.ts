import { expect, it } from 'vitest'
import { legacyContainers, legacyDeath, legacyMemory } from '../../api/legacy-serving.ts'
import { podConditions, type ServingRecord } from '../../api/pod-contract.ts'
import { formatServingRecord, servingRecordAnnotation, servingRecordOf } from '../../api/serving-record.ts'
import { createFakeClock } from '../../kube/clock.ts'
import { KubeError } from '../../kube/errors.ts'
import { silentLog as log } from '../../kube/log.ts'
import type { Pod } from '../../kube/resources.ts'
import { createStore } from '../../kube/store.ts'
import { fakeApi } from '../../kube/testing/fake-api.ts'
import { writeMissingRecords } from './missing-records.ts'

const containers = { app: 'containerd://1' }
const memory = { generation: 29, takenAt: '2026-01-01T00:00:01.250Z' }
const onStage = `epoch 2: ${legacyContainers(containers)}${legacyMemory(memory)}`

const podOf = (name: string, message: string, annotation?: string): Pod => ({
  metadata: {
    ...{ namespace: 'ns', name, uid: `uid-${name}`, resourceVersion: '1' },
    annotations: {
      mine: 'kept',
      ...(annotation !== undefined && { [servingRecordAnnotation]: annotation }),
    },
  },
  status: {
    conditions: [
      { type: podConditions.serving, status: 'True', message, lastTransitionTime: '2026-01-01T00:00:00Z' },
    ],
  },
})

/** An API server that checks preconditions, with a cache that shows its pods at once. */
function stand(given: readonly Pod[], refusals: Record<string, KubeError> = {}) {
  const pods = createStore<Pod>()
  for (const pod of given) pods.upsert(pod)
  const truth = new Map(given.map(pod => [pod.metadata.name, pod]))
  const asked: string[] = []
  const api = fakeApi({
    patch: async (_, { name }, { body }) => {
      asked.push(name)
      const [refusal, old] = [refusals[name], truth.get(name)]
      if (refusal !== undefined) throw refusal
      const { uid, resourceVersion, annotations } = body.metadata ?? {}
      if (old === undefined || old.metadata.uid !== uid || old.metadata.resourceVersion !== resourceVersion)
        throw new KubeError('Conflict', 'it has changed', { status: 409 })
      expect(body.status).toBeUndefined()
      const metadata = {
        ...old.metadata,
        resourceVersion: String(Number(resourceVersion) + 1),
        annotations: { ...old.metadata.annotations, ...annotations },
      }
      const written = { ...old, metadata }
      truth.set(name, written)
      pods.upsert(written)
      return written
    },
  })
  const clock = createFakeClock()
  const end = new AbortController()
  const running = writeMissingRecords({ pods: pods.list, api, clock, log }, end.signal)
  return {
    asked,
    truth,
    change: (pod: Pod) => truth.set(pod.metadata.name, pod),
    later: async () => {
      for (let step = 0; step < 60; step += 1) await clock.advance(10_000)
    },
    stop: async () => {
      await clock.advance(0)
      end.abort()
      await running
    },
  }
}

const recordAt = (pod: Pod | undefined): unknown =>
  JSON.parse(pod?.metadata.annotations?.[servingRecordAnnotation] ?? 'null')

it.each<[string, string, ServingRecord]>([
  ['is on stage', onStage, { containers, memory }],
  ['has died', `container app (x) has ended${legacyDeath('ns/set/0/life')}`, { diedWith: 'ns/set/0/life' }],
])('D7.record: a pod that %s as the version before says gets its record', async (_, message, record) => {
  const { truth, stop } = stand([podOf('a', message)])
  await stop()
  expect(recordAt(truth.get('a'))).toEqual({ version: 1, ...record, message })
  expect(servingRecordOf(truth.get('a') as Pod)).toEqual(record)
  expect(truth.get('a')).toMatchObject({ metadata: { annotations: { mine: 'kept' } } })
  expect(truth.get('a')?.status).toEqual(podOf('a', message).status)
})

it('D7.record: a record of an earlier condition is replaced', async () => {
  const { truth, stop } = stand([podOf('a', onStage, formatServingRecord({ diedWith: 'x' }, 'it has ended'))])
  await stop()
  expect(recordAt(truth.get('a'))).toEqual({ version: 1, containers, memory, message: onStage })
})

it('D7.record: nothing is written twice, nor where nothing is missing', async () => {
  const recorded = podOf('recorded', onStage, formatServingRecord({ containers }, onStage))
  const { asked, later, stop } = stand([podOf('a', onStage), recorded, podOf('silent', 'off stage')])
  await later()
  await later()
  expect(asked).toEqual(['a'])
  await stop()
})

it('D7.record: a condition that has changed meanwhile keeps its own facts', async () => {
  const { asked, truth, change, later, stop } = stand([podOf('a', onStage), podOf('b', onStage)])
  const now = podOf('a', 'it has ended', formatServingRecord({ diedWith: 'x' }, 'it has ended'))
  change({ ...now, metadata: { ...now.metadata, resourceVersion: '2' } })
  await later()
  expect(servingRecordOf(truth.get('a') as Pod)).toEqual({ diedWith: 'x' })
  expect(asked.slice(0, 2)).toEqual(['a', 'b'])
  await stop()
})

it('D7.record: policies of the version before are asked once in ten minutes, for one pod', async () => {
  const refusals = { a: new KubeError('Forbidden', 'it changes no annotation', { status: 403 }) } as Record<
    string,
    KubeError
  >
  const { asked, truth, later, stop } = stand([podOf('a', onStage), podOf('b', onStage)], refusals)
  await later()
  expect(asked).toEqual(['a', 'a'])
  delete refusals['a']
  await later()
  expect(asked).toEqual(['a', 'a', 'a', 'b'])
  expect(recordAt(truth.get('b'))).toMatchObject({ containers })
  await stop()
})

it('D7.record: a pod without room for it does not keep the next pod waiting', async () => {
  const invalid = new KubeError('Invalid', 'annotations are too long', { status: 422 })
  const { asked, stop } = stand([podOf('a', onStage), podOf('b', onStage)], { a: invalid })
  await stop()
  expect(asked).toEqual(['a', 'b'])
})
