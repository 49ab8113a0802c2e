import { expect, it } from 'vitest'
import { numberedSlotLeaseBody } from '../../api/numbered-slot.ts'
import { KubeError } from '../../kube/errors.ts'
import type { Lease } from '../../kube/resources.ts'
import { type Body, fakeApi, makeObject } from '../../kube/testing/fake-api.ts'
import { controllerReference } from '../decide/owner.ts'
import { makeSlotContext, owner } from '../testing/slot-context.ts'
import { makeHolder, makeLease } from '../testing/slots.ts'
import { writeLease } from './write-lease.ts'

const lease = makeLease(makeHolder('p0', 0))

/** An API server that has this Lease already. */
function stand(existing: Lease) {
  const patches: Body[] = []
  const urgentApi = fakeApi({
    create: async () => {
      throw new KubeError('AlreadyExists', 'it is there')
    },
    get: async () => existing,
    patch: async (_, __, { body }) => {
      patches.push(body)
      return makeObject(body)
    },
  })
  return { context: makeSlotContext({ urgentApi }), patches }
}
const said = numberedSlotLeaseBody({ ...lease, epoch: 9, holder: { name: 'p9', uid: 'uid-p9' } })
const metadata = (uid: string, annotations: Readonly<Record<string, string>> = {}) => ({
  ...{ ...said.metadata, annotations, uid: 'uid-of-lease', resourceVersion: '7' },
  ownerReferences: [controllerReference({ ...owner, uid })],
})

it('D7.cas: a Lease that the cache does not show is not overwritten: what was decided did not know of it', async () => {
  const { context, patches } = stand({
    metadata: metadata(owner.uid, said.metadata.annotations),
    spec: said.spec,
  })
  await expect(writeLease(context, lease, undefined, 0)).rejects.toMatchObject({ code: 'Conflict' })
  expect(patches).toEqual([])
})

it('one that says nothing any more is written again; another owner’s is left alone', async () => {
  const broken = stand({ metadata: metadata(owner.uid) })
  await writeLease(broken.context, lease, undefined, 0)
  expect(broken.patches[0]?.metadata).toMatchObject({ resourceVersion: '7' })
  const foreign = stand({ metadata: metadata('another') })
  await expect(writeLease(foreign.context, lease, undefined, 0)).rejects.toMatchObject({
    code: 'AlreadyExists',
  })
  expect(foreign.patches).toEqual([])
})

it('D7.owner: one that was left behind with its pods gets its owner with the next write', async () => {
  const { context, patches } = stand({ metadata: metadata('nobody') })
  await writeLease(context, lease, '7', 0)
  expect(patches[0]?.metadata?.ownerReferences).toMatchObject([{ uid: owner.uid }])
})
