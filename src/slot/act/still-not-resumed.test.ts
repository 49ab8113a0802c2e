import { expect, it } from 'vitest'
import { podConditions, servingReasons } from '../../api/pod-contract.ts'
import { KubeError } from '../../kube/errors.ts'
import { fakeApi, makeObject } from '../../kube/testing/fake-api.ts'
import { makePodObject } from '../testing/objects.ts'
import { makeSlotContext } from '../testing/slot-context.ts'
import { makeHolder, makeLease } from '../testing/slots.ts'
import { actOnSlot } from './on-slot.ts'
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

/** Tells a called pod to end. @returns how many Leases were written */
const ended = async (reason: string) => {
  const conditions = [{ type: podConditions.serving, status: 'False', reason }]
  const pod = makePodObject('h', { status: { conditions } })
  let written = 0
  const api = fakeApi({
    patch: async (_, __, { body }) => {
      written += 1
      return makeObject(body)
    },
  })
  const holder = { name: 'h', uid: pod.metadata.uid }
  const lease = { ...makeLease(makeHolder('h', 0)), holder, ending: pod.metadata.uid }
  const context = makeSlotContext({ api, urgentApi: fakeApi({ get: async () => pod }) })
  const about = { restarts: 0, stateLost: false, unresumed: holder }
  const outcome = actOnSlot(context, { type: 'writeSlot', lease, version: '1', ...about })
  return { code: await outcome.then(({ type }) => type).catch(({ code }) => code), written }
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

it('D7.ending: a called pod is not told to end if the API server says that it has begun to resume', async () => {
  expect(await ended(resuming)).toEqual({ code: 'Conflict', written: 0 })
  expect(await ended(offStage)).toEqual({ code: 'done', written: 1 })
})
