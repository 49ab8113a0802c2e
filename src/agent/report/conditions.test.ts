import { expect, it } from 'vitest'
import { podConditions } from '../../api/pod-contract.ts'
import { formatServingRecord, longestRecord, servingRecordAnnotation } from '../../api/serving-record.ts'
import { createFakeClock } from '../../kube/clock.ts'
import { KubeError } from '../../kube/errors.ts'
import { type Body, fakeApi, makeObject } from '../../kube/testing/fake-api.ts'
import { patchCondition } from './conditions.ts'

const pod = { namespace: 'ns', name: 'p', uid: 'u' }
const died = { type: podConditions.serving, status: 'False', reason: 'Died', message: 'm' } as const
const record = { diedWith: 'ns/set/0/life' }

function stand(answers: readonly (KubeError | undefined)[] = []) {
  const written: Body[] = []
  const api = fakeApi({
    patch: async (_, __, { body }) => {
      const answer = answers[written.length]
      written.push(body)
      if (answer !== undefined) throw answer
      return makeObject(body)
    },
  })
  return { written, deps: { api, clock: createFakeClock() } }
}

it('D7.record: the condition and its facts are one write', async () => {
  const { written, deps } = stand()
  expect(await patchCondition(deps, pod, { ...died, record })).toBeDefined()
  expect(written).toMatchObject([
    {
      metadata: { uid: 'u', annotations: { [servingRecordAnnotation]: formatServingRecord(record, 'm') } },
      status: { conditions: [died] },
    },
  ])
})

it('D7.endpoints: the readiness gate of a pod that waits comes with its first condition', async () => {
  const { written, deps } = stand()
  const said = { status: 'False', reason: 'OffStage', message: 'it waits' } as const
  const gate = { ...said, ifVersion: '7' }
  await patchCondition(deps, pod, { ...died, type: podConditions.understudy, gate })
  expect(written).toMatchObject([
    {
      metadata: { uid: 'u', resourceVersion: '7' },
      status: { conditions: [{ type: podConditions.understudy }, { type: podConditions.serving, ...said }] },
    },
  ])
  // A promotion has begun since.
  const conflict = new KubeError('Conflict', 'it has changed', { status: 409 })
  expect(await patchCondition(stand([conflict]).deps, pod, { ...died, gate })).toBeUndefined()
})

it('D7.record: a condition without facts removes those of the one before', async () => {
  const { written, deps } = stand()
  await patchCondition(deps, pod, died)
  await patchCondition(deps, pod, { ...died, type: podConditions.understudy })
  expect(written.map(({ metadata }) => metadata)).toEqual([
    { uid: 'u', annotations: { [servingRecordAnnotation]: null } },
    { uid: 'u', annotations: {} },
  ])
})

it('D7.record: a record that no reader would accept is left out', async () => {
  const { written, deps } = stand()
  await patchCondition(deps, pod, { ...died, record: { diedWith: 'x'.repeat(longestRecord) } })
  expect(written).toMatchObject([
    { metadata: { annotations: { [servingRecordAnnotation]: null } }, status: { conditions: [died] } },
  ])
})

it('D7.record: policies of the version before refuse the facts, and get the condition', async () => {
  const forbidden = new KubeError('Forbidden', 'it changes no annotation', { status: 403 })
  const { written, deps } = stand([forbidden])
  expect(await patchCondition(deps, pod, { ...died, record })).toBeDefined()
  expect(written).toMatchObject([{}, { metadata: { annotations: {} }, status: { conditions: [died] } }])
  await expect(patchCondition(stand([forbidden, forbidden]).deps, pod, died)).rejects.toThrow(forbidden)
})

it('is told when the pod is gone', async () => {
  const gone = new KubeError('NotFound', 'gone', { status: 404 })
  expect(await patchCondition(stand([gone]).deps, pod, died)).toBeUndefined()
})
