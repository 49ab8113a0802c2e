import { expect, it } from 'vitest'
import { grantOverAnnotation } from '../../api/grant.ts'
import { podConditions, servingReasons } from '../../api/pod-contract.ts'
import { KubeError } from '../../kube/errors.ts'
import { fakeApi } from '../../kube/testing/fake-api.ts'
import { makePodObject } from '../testing/objects.ts'
import { makeSlotContext } from '../testing/slot-context.ts'
import { endGrant } from './end-grant.ts'

const { resuming, notAnswering, onStage, offStage } = servingReasons

/** Ends a grant of a pod that has another version than the cache shows, and this condition. @returns what was written. */
async function ended(status: 'True' | 'False', reason: string, over = 0) {
  const conditions = [{ type: podConditions.serving, status, reason }]
  const pod = makePodObject('h', { status: { conditions } })
  const annotations = over === 0 ? {} : { [grantOverAnnotation('0123abcd')]: String(over) }
  const now = { ...pod, metadata: { ...pod.metadata, resourceVersion: '8', annotations } }
  const written: unknown[] = []
  const urgentApi = fakeApi({
    get: async () => now,
    patch: async (_, __, { body: { metadata } }) => {
      if (metadata?.resourceVersion !== '8') throw new KubeError('Conflict', 'h', { status: 409 })
      written.push(metadata)
      return now
    },
  })
  const { uid } = now.metadata
  const ref = { name: 'h', uid, resourceVersion: '7' }
  const action = { type: 'endGrant', pod: ref, slot: 0, incarnation: '0123abcd', number: 3 } as const
  const failed = await endGrant(makeSlotContext({ urgentApi }), action).then(
    () => undefined,
    ({ name }: Error) => name,
  )
  return { written, failed }
}

it('D7.announced: the operator ends a grant on the pod of the heir, in the version in which that has not told that it resumes', async () => {
  const { written, failed } = await ended('False', offStage)
  expect(failed).toBeUndefined()
  expect(written).toMatchObject([
    { resourceVersion: '8', annotations: { [grantOverAnnotation('0123abcd')]: '3' } },
  ])
})

it.each([
  ['False', resuming],
  ['False', notAnswering],
  ['True', onStage],
] as const)('D7.announced: it ends none of a pod that may run: %s %s', async (status, reason) => {
  expect(await ended(status, reason)).toEqual({ written: [], failed: 'PodChangedError' })
})

it('D7.announced: an operator that was away does not take back what a later one has ended', async () => {
  expect(await ended('False', offStage, 5)).toEqual({ written: [], failed: 'PodChangedError' })
  expect((await ended('False', offStage, 2)).written).toHaveLength(1)
})
