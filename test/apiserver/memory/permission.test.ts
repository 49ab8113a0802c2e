/** Tests the operator's own reaction to a namespace's label; the admission policies are not installed here. */

import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { type BackupPodSet, backupPodSets } from '../../../src/api/backuppodset.ts'
import { labels } from '../../../src/api/labels.ts'
import { memoryAllowed, memoryPermission } from '../../../src/api/memory-permission.ts'
import { parseNumberedSlotLease } from '../../../src/api/numbered-slot.ts'
import { type Api, createApi } from '../../../src/kube/api.ts'
import { loadConnection } from '../../../src/kube/connection.ts'
import { events, leases, namespaces, pods } from '../../../src/kube/resources.ts'
import { eventually } from '../../support/eventually.ts'
import { type FakeKubelet, startFakeKubelet } from '../lib/fake-kubelet.ts'
import { startOperatorHere } from '../lib/operator-here.ts'
import { adminKubeconfig } from '../lib/plane.ts'
import { type FakeAgents, startFakeAgents } from './fake-agents.ts'

let api: Api
let kubelet: FakeKubelet
let agents: FakeAgents
let operator: AsyncDisposable
const namespace = `permission-${randomBytes(4).toString('hex')}`
beforeAll(async () => {
  api = createApi({ connection: await loadConnection({ kubeconfig: adminKubeconfig() }) })
  for (const name of [namespace, `${namespace}-agents`]) await api.create(namespaces, { metadata: { name } })
  kubelet = startFakeKubelet(api, namespace, {
    place: ({ metadata }) => (metadata.labels?.[labels.type] === 'primary' ? 'fake-p' : 'fake-a'),
  })
  agents = await startFakeAgents(api, namespace, ['fake-p', 'fake-a', 'fake-b'])
  operator = startOperatorHere(namespace, { agentNamespace: `${namespace}-agents` })
})
afterAll(async () => {
  await operator[Symbol.asyncDispose]()
  await agents[Symbol.asyncDispose]()
  await kubelet[Symbol.asyncDispose]()
  await api.close()
})

const label = (value: string | null) =>
  api.patch(
    namespaces,
    { name: namespace },
    { type: 'merge', body: { metadata: { labels: { [memoryPermission.label]: value } } } },
  )
const condition = (type: string, want: object) =>
  eventually(async () => {
    const { status } = await api.get<BackupPodSet>(backupPodSets, { namespace, name: 'web' })
    expect(status?.conditions?.find(each => each.type === type)).toMatchObject(want)
  })
const slots = async () =>
  (await api.list(leases, { namespace, labelSelector: `${labels.set}=web` })).items.flatMap(
    lease => parseNumberedSlotLease(lease) ?? [],
  )

it('D10.permission: a set that asks for memory is not begun before its namespace is labelled, and nothing of it is saved without the label', async () => {
  await api.create(
    backupPodSets,
    {
      ...{ apiVersion: 'backup.example.com/v1alpha1', kind: 'BackupPodSet', metadata: { name: 'web' } },
      spec: {
        ...{ replicas: 1, hotBackups: 1, checkpoint: {} },
        template: { spec: { containers: [{ name: 'app', image: 'app' }] } },
      },
    },
    { namespace },
  )
  await condition('Degraded', {
    ...{ status: 'True', reason: 'MemoryNotAllowed' },
    message: expect.stringContaining('backup.example.com/memory=allowed'),
  })
  await eventually(async () => {
    const fieldSelector = 'regarding.name=web,reason=MemoryNotAllowed'
    expect((await api.list(events, { namespace, fieldSelector })).items).toHaveLength(1)
  })
  expect((await api.list(pods, { namespace })).items).toEqual([])
  expect(await slots()).toEqual([])

  await label(memoryAllowed[memoryPermission.label] ?? '')
  await condition('CheckpointReady', { status: 'True' })
  expect((await slots())[0]?.holders).toContain('fake-a')

  await label(null)
  await condition('CheckpointReady', { status: 'False', reason: 'MemoryNotAllowed' })
  // Copies are kept for a while, because labels flap. observe.test.ts of src/backuppodset/memory defines how long.
  await eventually(async () => expect((await slots()).map(({ unsaved }) => unsaved)).toEqual([true]))
  expect((await slots())[0]?.holders).toContain('fake-a')
  await condition('Ready', { status: 'True' })
})
