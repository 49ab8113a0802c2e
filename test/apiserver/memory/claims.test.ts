import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { type BackupPodSet, backupPodSets } from '../../../src/api/backuppodset.ts'
import { labels } from '../../../src/api/labels.ts'
import { memoryAllowed } from '../../../src/api/memory-permission.ts'
import { migratingPods } from '../../../src/api/migrating-pod.ts'
import { migrations, outcomeOf } from '../../../src/api/migration.ts'
import { parseNumberedSlotLease } from '../../../src/api/numbered-slot.ts'
import { type Api, createApi } from '../../../src/kube/api.ts'
import { loadConnection } from '../../../src/kube/connection.ts'
import { events, leases, namespaces, persistentVolumeClaims, pods } from '../../../src/kube/resources.ts'
import { eventually } from '../../support/eventually.ts'
import { type FakeKubelet, startFakeKubelet } from '../lib/fake-kubelet.ts'
import { startOperatorHere } from '../lib/operator-here.ts'
import { adminKubeconfig } from '../lib/plane.ts'
import { type FakeAgents, startFakeAgents } from './fake-agents.ts'

let api: Api
let kubelet: FakeKubelet
let agents: FakeAgents
let operator: AsyncDisposable
const namespace = `claims-${randomBytes(4).toString('hex')}`
beforeAll(async () => {
  api = createApi({ connection: await loadConnection({ kubeconfig: adminKubeconfig() }) })
  for (const name of [namespace, `${namespace}-agents`])
    await api.create(namespaces, { metadata: { name, labels: memoryAllowed } })
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

const makeClaim = (name: string, accessMode: string) =>
  api.create(
    persistentVolumeClaims,
    {
      metadata: { name },
      spec: { accessModes: [accessMode], resources: { requests: { storage: '1Mi' } } },
    },
    { namespace },
  )

async function makeSet(name: string, claimName: string) {
  const volumes = [{ name: 'data', persistentVolumeClaim: { claimName } }]
  const containers = [{ name: 'app', image: 'app', volumeMounts: [{ name: 'data', mountPath: '/data' }] }]
  await api.create(
    backupPodSets,
    {
      apiVersion: 'backup.example.com/v1alpha1',
      kind: 'BackupPodSet',
      metadata: { name },
      spec: { replicas: 1, hotBackups: 1, checkpoint: {}, template: { spec: { containers, volumes } } },
    },
    { namespace },
  )
  return name
}

const ready = (name: string, want: object) =>
  eventually(async () => {
    const { status } = await api.get<BackupPodSet>(backupPodSets, { namespace, name })
    expect([status?.readyReplicas, status?.replicas]).toEqual([1, 1])
    const condition = status?.conditions?.find(({ type }) => type === 'CheckpointReady')
    expect(condition).toMatchObject(want)
    return status
  })
const leaseOf = async (name: string) => {
  const { items } = await api.list(leases, { namespace, labelSelector: `${labels.set}=${name}` })
  return items.flatMap(lease => parseNumberedSlotLease(lease) ?? [])[0]
}
const eventsOf = async (name: string, reason: string) =>
  (await api.list(events, { namespace, fieldSelector: `regarding.name=${name},reason=${reason}` })).items

it('D6.claims: memory is kept beside a claim that is ReadWriteMany, and the set says what is ahead of it', async () => {
  await makeClaim('shared', 'ReadWriteMany')
  const set = await makeSet('beside-shared', 'shared')
  const { message } =
    (await ready(set, { status: 'True', reason: 'DiskAheadOfMemory' }))?.conditions?.find(
      ({ type }) => type === 'CheckpointReady',
    ) ?? {}
  expect(message).toContain('claim shared is not saved with the memory')
  expect((await leaseOf(set))?.holders[0]).toBe('fake-a')
  await eventually(async () => expect(await eventsOf(set, 'DiskAheadOfMemory')).toHaveLength(1))
})

it('D6.claims-refused: beside one that is ReadWriteOnce nothing is saved, and pods are there', async () => {
  for (const [claim, mode] of [
    ['alone', 'ReadWriteOnce'],
    ['alone-pod', 'ReadWriteOncePod'],
  ] as const) {
    await makeClaim(claim, mode)
    const set = await makeSet(`beside-${claim}`, claim)
    await ready(set, { status: 'False', reason: 'ClaimNotShared' })
    await eventually(async () => expect(await eventsOf(set, 'ClaimNotShared')).toHaveLength(1))
    // No node is to hold a copy, so no agent saves.
    expect(await leaseOf(set)).toMatchObject({ holders: [], heir: undefined, node: 'fake-p' })
  }
})

it('MP-20: a MigratingPod beside one that is ReadWriteOnce tells why it does not move, and its pod runs on', async () => {
  await makeClaim('alone-moving', 'ReadWriteOnce')
  const volumes = [{ name: 'data', persistentVolumeClaim: { claimName: 'alone-moving' } }]
  const containers = [{ name: 'app', image: 'app', volumeMounts: [{ name: 'data', mountPath: '/data' }] }]
  const kind = { apiVersion: 'backup.example.com/v1alpha1', kind: 'MigratingPod' }
  const body = {
    ...kind,
    metadata: { name: 'claimed' },
    spec: { template: { spec: { containers, volumes } } },
  }
  await api.create(migratingPods, body, { namespace })
  await eventually(async () => {
    const { status } = await api.get(migratingPods, { namespace, name: 'claimed' })
    expect(status, JSON.stringify(status)).toMatchObject({ state: 'Running', activePod: 'claimed-0' })
    expect(status?.conditions).toContainEqual(
      expect.objectContaining({ type: 'CheckpointReady', status: 'False', reason: 'ClaimNotShared' }),
    )
  })
  const move = {
    ...kind,
    kind: 'Migration',
    metadata: { name: 'away' },
    spec: { source: { name: 'claimed-0' } },
  }
  await api.create(migrations, move, { namespace })
  await eventually(async () => {
    const migration = await api.get(migrations, { namespace, name: 'away' })
    expect(outcomeOf(migration), JSON.stringify(migration.status)).toMatchObject({
      ...{ status: 'False', reason: 'NoMemory' },
    })
  })
  const pod = await api.get(pods, { namespace, name: 'claimed-0' })
  expect(pod.metadata.deletionTimestamp).toBeUndefined()
})

it('one that does not exist is said, and memory is kept once it does', async () => {
  const set = await makeSet('beside-late', 'late')
  await ready(set, { status: 'False', reason: 'ClaimMissing' })
  await makeClaim('late', 'ReadWriteMany')
  await ready(set, { status: 'True', reason: 'DiskAheadOfMemory' })
  expect((await leaseOf(set))?.holders[0]).toBe('fake-a')
})

it('D13.environment: a set whose variables stay those of the dead pod says so, in one event', async () => {
  const name = 'named'
  const env = [{ name: 'POD', valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } }]
  await api.create(
    backupPodSets,
    {
      ...{ apiVersion: 'backup.example.com/v1alpha1', kind: 'BackupPodSet', metadata: { name } },
      spec: {
        ...{ replicas: 1, hotBackups: 1, checkpoint: {} },
        template: { spec: { containers: [{ name: 'app', image: 'app', env }] } },
      },
    },
    { namespace },
  )
  const status = await ready(name, { status: 'True', reason: 'EnvironmentOfDeadPod' })
  const condition = status?.conditions?.find(({ type }) => type === 'CheckpointReady')
  expect(condition?.message).toContain('POD (metadata.name)')
  await eventually(async () => expect(await eventsOf(name, 'EnvironmentOfDeadPod')).toHaveLength(1))
})
