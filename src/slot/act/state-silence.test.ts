import { expect, it } from 'vitest'
import { silencesAnnotation } from '../../api/node-report.ts'
import { KubeError } from '../../kube/errors.ts'
import { type Body, fakeApi, makeObject } from '../../kube/testing/fake-api.ts'
import type { SlotActionOf } from '../decide/actions.ts'
import { makeSlotContext } from '../testing/slot-context.ts'
import { stateSilence } from './state-silence.ts'

const action: SlotActionOf<'stateSilence'> = {
  type: 'stateSilence',
  node: 'n1',
  silences: 3,
  report: { uid: 'uid-n1', resourceVersion: '7' },
}

it('the API server states silence in the report, if that is as it was seen', async () => {
  const written: Body[] = []
  const urgentApi = fakeApi({
    patch: async (_, __, { body }) => {
      written.push(body)
      return makeObject(body)
    },
  })
  await stateSilence(makeSlotContext({ urgentApi }), action)
  expect(written).toEqual([{ metadata: { ...action.report, annotations: { [silencesAnnotation]: '3' } } }])
})

it.each(['Conflict', 'NotFound'] as const)(
  '%s: the agent has written, so there is no statement and no failure',
  async code => {
    const urgentApi = fakeApi({ patch: () => Promise.reject(new KubeError(code, 'it has changed')) })
    await expect(stateSilence(makeSlotContext({ urgentApi }), action)).resolves.toBeUndefined()
  },
)

it('a right that is missing is a failure', async () => {
  const urgentApi = fakeApi({ patch: () => Promise.reject(new KubeError('Forbidden', 'no')) })
  await expect(stateSilence(makeSlotContext({ urgentApi }), action)).rejects.toMatchObject({
    code: 'Forbidden',
  })
})
