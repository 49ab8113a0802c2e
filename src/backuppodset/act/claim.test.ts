import { expect, it } from 'vitest'
import { KubeError } from '../../kube/errors.ts'
import { type Pod, pods } from '../../kube/resources.ts'
import { fakeApi, makeObject } from '../../kube/testing/fake-api.ts'
import { makePodObject } from '../../slot/testing/objects.ts'
import { makeContext } from '../testing/context.ts'
import { makeSet } from '../testing/snapshots.ts'
import { adopt, release } from './claim.ts'

const set = makeSet()
const other = { apiVersion: 'v1', kind: 'ConfigMap', name: 'other', uid: 'other' }
const ours = {
  apiVersion: 'backup.example.com/v1alpha1',
  kind: 'BackupPodSet',
  name: set.name,
  uid: set.uid,
  controller: true,
}
const ref = { name: 'p', uid: 'uid-p', resourceVersion: '1' }
const podWith = (...ownerReferences: (typeof other)[]) =>
  makePodObject('p', { metadata: { resourceVersion: '2', ownerReferences } })

/** An API server whose pod got another owner after the cache saw it. */
function changedSince(now: Pod) {
  const written: unknown[] = []
  const api = fakeApi({
    get: async resource => (resource === pods ? now : makeObject({ metadata: { uid: set.uid } })),
    patch: async (_, __, { body }) => {
      if (body.metadata?.resourceVersion !== now.metadata.resourceVersion)
        throw new KubeError('Conflict', 'old')
      written.push(body.metadata)
      return now
    },
  })
  return { context: makeContext({ set, api, urgentApi: api }), written }
}

it('an owner that was added meanwhile stays when a pod is adopted', async () => {
  const { context, written } = changedSince(podWith(other))
  await adopt(context, ref, podWith())
  expect(written).toMatchObject([{ ownerReferences: [other, { uid: set.uid }] }])
})

it('the role of an adopted pod is that of its label `type`, and a released pod has none', async () => {
  const labels = { type: 'primary', 'backup.example.com/role': 'hotbackup' }
  const orphan = makePodObject('p', { metadata: { resourceVersion: '1', labels } })
  const { context, written } = changedSince(orphan)
  await adopt(context, ref, orphan)
  await release(context, ref, orphan)
  expect(written).toMatchObject([
    { labels: { 'backup.example.com/role': 'primary' } },
    { labels: { 'backup.example.com/role': null } },
  ])
})

it('and when one is let go', async () => {
  const { context, written } = changedSince(podWith(ours, other))
  await release(context, ref, podWith(ours))
  expect(written).toMatchObject([{ ownerReferences: [other] }])
})
