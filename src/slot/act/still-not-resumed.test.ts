import { expect, it } from 'vitest'
import { podConditions, servingReasons } from '../../api/pod-contract.ts'
import { KubeError } from '../../kube/errors.ts'
import { fakeApi } from '../../kube/testing/fake-api.ts'
import { makePodObject } from '../testing/objects.ts'
import { makeSlotContext } from '../testing/slot-context.ts'
import { requireNotResumed } from './still-not-resumed.ts'

const asked = (uid: string, status?: string, reason?: string) => {
  const condition = status && { type: podConditions.serving, status, ...(reason && { reason }) }
  const pod = makePodObject('h', { status: { conditions: condition ? [condition] : [] } })
  const urgentApi = fakeApi({
    get: async () => {
      if (uid === 'gone') throw new KubeError('NotFound', 'h', { status: 404 })
      return { ...pod, metadata: { ...pod.metadata, uid } }
    },
  })
  return requireNotResumed(makeSlotContext({ urgentApi }), { name: 'h', uid: 'uid-h' })
}
const { resuming, notAnswering, onStage, offStage, died } = servingReasons

it('D7.ending: a called pod that may run by the API server is not passed over, whatever a cache shows', async () => {
  for (const [status, reason] of [
    ['False', resuming],
    ['False', notAnswering],
    ['True', onStage],
  ] as const)
    await expect(asked('uid-h', status, reason)).rejects.toMatchObject({ code: 'Conflict' })
})

it('one of which no agent has told that it resumes is passed over, and one that has ended or is another pod', async () => {
  await expect(asked('uid-h')).resolves.toBeUndefined()
  for (const reason of [offStage, died])
    await expect(asked('uid-h', 'False', reason)).resolves.toBeUndefined()
  await expect(asked('another', 'False', resuming)).resolves.toBeUndefined()
  await expect(asked('gone')).resolves.toBeUndefined()
})
