import { expect, it } from 'vitest'
import { holdInitContainer, podConditions, servingReasons } from '../../api/pod-contract.ts'
import { KubeError } from '../../kube/errors.ts'
import type { Pod } from '../../kube/resources.ts'
import { fakeApi } from '../../kube/testing/fake-api.ts'
import { makePodObject, type PodCondition } from '../testing/objects.ts'
import { makeSlotContext } from '../testing/slot-context.ts'
import { makeHolder, makeLease } from '../testing/slots.ts'
import { requireUnready } from './still-unready.ts'

const ready = { type: 'Ready', status: 'True' }
const serves = { type: podConditions.serving, status: 'True' }
const died = { type: podConditions.serving, status: 'False', reason: servingReasons.died }

const asked = (pod: Pod | undefined, of?: Parameters<typeof requireUnready>[2]) => {
  const urgentApi = fakeApi({
    get: async () => {
      if (pod === undefined) throw new KubeError('NotFound', 'p', { status: 404 })
      return pod
    },
  })
  return requireUnready(makeSlotContext({ urgentApi }), 'p', of)
}

const pod = (
  conditions: readonly PodCondition[],
  understudy = false,
  metadata: Partial<Pod['metadata']> = {},
) =>
  makePodObject('p', {
    metadata,
    spec: { initContainers: understudy ? [{ name: holdInitContainer }] : [] },
    status: { conditions },
  })

it('D7.lost-node: what a cache shows unready and the API server ready is not replaced', async () => {
  await expect(asked(pod([ready]))).rejects.toMatchObject({ code: 'Conflict' })
  await expect(asked(pod([ready, serves], true))).rejects.toMatchObject({ code: 'Conflict' })
})

it('one that is unready, has died, goes or is gone is', async () => {
  for (const each of [
    pod([{ ...ready, status: 'False' }]),
    pod([ready, { ...serves, status: 'False' }], true),
    pod([ready, died], true),
    pod([ready], false, { deletionTimestamp: '2030-01-01T00:00:00Z' }),
    undefined,
  ])
    await expect(asked(each)).resolves.toBeUndefined()
})

it('a ready pod may be replaced, too, if one of its containers is not the one that the Lease names', async () => {
  const runs = (name: string, containerID: string) => ({
    ...{ name, containerID, image: 'web:1', imageID: '', ready: true, restartCount: 0 },
  })
  const p = makePodObject('p', {
    spec: { containers: [{ name: 'app' }, { name: 'side' }] },
    status: { conditions: [ready], containerStatuses: [runs('app', 'c://1'), runs('side', 'c://3')] },
  })
  const of = (containers: string) => ({
    lease: { ...makeLease(makeHolder('p', 0)), containers },
    restarts: 0,
  })
  await expect(asked(p, of('app=c://1,side=c://2'))).resolves.toBeUndefined()
  await expect(asked(p, of('app=c://1,side=c://3'))).rejects.toMatchObject({ code: 'Conflict' })
})
