/** MigratingPods against a real API server: the operator is real, kubelet and agents are not. */
import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest'
import { run } from '../../../build/run.ts'
import { type BackupPodSet, backupPodSets } from '../../../src/api/backuppodset.ts'
import { labels } from '../../../src/api/labels.ts'
import { memoryAllowed } from '../../../src/api/memory-permission.ts'
import {
  type MigratingPod,
  type MigratingPodSpec,
  type MigratingPodState,
  migratingPods,
} from '../../../src/api/migrating-pod.ts'
import { type MigrationSpec, migrations } from '../../../src/api/migration.ts'
import { type Api, createApi } from '../../../src/kube/api.ts'
import { loadConnection } from '../../../src/kube/connection.ts'
import { isKubeError } from '../../../src/kube/errors.ts'
import { namespaces, nodes, type Pod, pods } from '../../../src/kube/resources.ts'
import { eventually } from '../../support/eventually.ts'
import { type FakeKubelet, startFakeKubelet } from '../lib/fake-kubelet.ts'
import { startOperatorHere } from '../lib/operator-here.ts'
import { adminKubeconfig } from '../lib/plane.ts'
import { type FakeAgents, startFakeAgents } from './fake-agents.ts'

let api: Api
let kubelet: FakeKubelet
let agents: FakeAgents
let operator: AsyncDisposable
const namespace = `mpod-${randomBytes(4).toString('hex')}`
const names = ['mp-a', 'mp-b', 'mp-c']

/** Places each pod on the node with the fewest pods. */
const placed = new Map<string, string>()
const place = ({ metadata: { uid } }: Pod, others: readonly Pod[]): string => {
  const load = (node: string) => others.filter(other => placed.get(other.metadata.uid) === node).length
  const node = placed.get(uid) ?? names.reduce((best, each) => (load(each) < load(best) ? each : best))
  placed.set(uid, node)
  return node
}

beforeAll(async () => {
  api = createApi({ connection: await loadConnection({ kubeconfig: adminKubeconfig() }) })
  for (const name of [namespace, `${namespace}-agents`])
    await api.create(namespaces, { metadata: { name, labels: memoryAllowed } })
  for (const name of names) await api.create(nodes, { metadata: { name } })
  kubelet = startFakeKubelet(api, namespace, { place })
  agents = await startFakeAgents(api, namespace, names)
  operator = startOperatorHere(namespace, { agentNamespace: `${namespace}-agents` })
})
afterAll(async () => {
  await operator[Symbol.asyncDispose]()
  await agents[Symbol.asyncDispose]()
  await kubelet[Symbol.asyncDispose]()
  for (const name of names) await api.delete(nodes, { name })
  await api.close()
})

const containers = [{ name: 'app', image: 'app' }]
const template = { metadata: { labels: { app: 'one' } }, spec: { containers } }

async function create(name: string, spec: Partial<MigratingPodSpec> = {}) {
  const body = {
    ...{ apiVersion: 'backup.example.com/v1alpha1', kind: 'MigratingPod' },
    ...{ metadata: { name }, spec: { template, ...spec } },
  }
  await api.create(migratingPods, body, { namespace })
  return { namespace, name }
}
type Ref = Awaited<ReturnType<typeof create>>

const get = (ref: Ref) => api.get(migratingPods, ref)
const setOf = (ref: Ref) => api.get<BackupPodSet>(backupPodSets, ref)
const podsOf = async ({ name }: Ref): Promise<readonly Pod[]> =>
  (await api.list(pods, { namespace, labelSelector: `${labels.set}=${name}` })).items.filter(
    ({ metadata }) => metadata.deletionTimestamp === undefined,
  )

const reached = (ref: Ref, state: MigratingPodState, activePod?: string): Promise<MigratingPod> =>
  eventually(async () => {
    const now = await get(ref)
    expect(now.status, JSON.stringify(now.status)).toMatchObject({ state, ...(activePod && { activePod }) })
    return now
  })

/** Runs, and another node has its memory. */
const saved = (ref: Ref, activePod: string) =>
  eventually(async () => {
    const now = await reached(ref, 'Running', activePod)
    const condition = now.status?.conditions?.find(({ type }) => type === 'CheckpointReady')
    expect(condition).toMatchObject({ status: 'True' })
    return now
  })

const move = (name: string, spec: MigrationSpec) =>
  api.create(
    migrations,
    { apiVersion: 'backup.example.com/v1alpha1', kind: 'Migration', metadata: { name }, spec },
    { namespace },
  )

/** Collects the states that the object goes through. */
async function statesOf(ref: Ref, signal: AbortSignal, seen: Set<string>) {
  const { items: _, metadata } = await api.list(migratingPods, { namespace })
  const query = { namespace, resourceVersion: metadata.resourceVersion }
  try {
    for await (const event of api.watch(migratingPods, query, { signal }))
      if (event.type === 'MODIFIED' && event.object.metadata.name === ref.name)
        seen.add(event.object.status?.state ?? '')
  } catch (error) {
    if (!signal.aborted) throw error
  }
}

describe('a MigratingPod', () => {
  it('MP-01: has one pod, NAME-0, of its template, and tells where it runs', async () => {
    const seen = new Set<string>()
    const stop = new AbortController()
    const ref = { namespace, name: 'first' }
    const watching = statesOf(ref, stop.signal, seen)
    await create(ref.name)
    const { metadata, status } = await saved(ref, 'first-0')
    stop.abort()
    await watching
    expect([...seen]).toEqual(['Creating', 'Running'])
    const set = await setOf(ref)
    expect(set.spec).toMatchObject({ replicas: 1, hotBackups: 0, coldBackups: 0, template })
    expect(set.metadata.ownerReferences).toMatchObject([{ uid: metadata.uid, controller: true }])
    const own = await podsOf(ref)
    expect(own.map(pod => pod.metadata.name)).toEqual(['first-0'])
    expect(own[0]?.metadata.ownerReferences).toMatchObject([{ uid: set.metadata.uid, controller: true }])
    expect(status).toMatchObject({ node: own[0]?.spec?.nodeName, generation: 1 })
  })

  it('MP-08: kubectl get shows its state, its pod and its node', async () => {
    const ref = await create('shown')
    const { status } = await saved(ref, 'shown-0')
    const args = ['--kubeconfig', adminKubeconfig(), '-n', namespace, 'get', 'mpod', 'shown']
    const stdout = await run(inject('kubectl'), args)
    const [header, row] = stdout.trimEnd().split('\n')
    expect(header?.split(/\s+/)).toEqual(['NAME', 'STATE', 'POD', 'NODE', 'READY', 'AGE'])
    expect(row?.split(/\s+/).slice(0, 5)).toEqual(['shown', 'Running', 'shown-0', status?.node, 'True'])
  })

  it('tells all its conditions when it is a clone, and is suspended', async () => {
    const ref = await create('asleep', { clonePod: 'nobody', suspend: true })
    const types = ['Ready', 'Degraded', 'CheckpointReady', 'Suspended', 'Cloned']
    await eventually(async () => {
      const { status } = await get(ref)
      expect(status?.conditions?.map(({ type }) => type).sort()).toEqual(types.sort())
    })
  })

  it('MP-05, MP-33: a move makes the pod with the next number, with what was added to the one before', async () => {
    const ref = await create('moving')
    const { status } = await saved(ref, 'moving-0')
    const added = { labels: { shard: '7' }, annotations: { 'example.com/note': 'mine' } }
    const at = { namespace, name: 'moving-0' }
    await api.patch(pods, at, { type: 'merge', body: { metadata: added } })
    await eventually(async () => expect((await setOf(ref)).spec.template.metadata).toMatchObject(added))
    await move('there', { source: { name: 'moving-0' } })
    const moved = await saved(ref, 'moving-1')
    expect(moved.status?.node).not.toBe(status?.node)
    expect(moved.status?.lastMove).toMatchObject({ from: 'moving-0', to: 'moving-1', reason: 'Migration' })
    const [now] = await eventually(async () => {
      const own = await podsOf(ref)
      expect(own.map(({ metadata }) => metadata.name)).toEqual(['moving-1'])
      return own
    })
    expect(now?.metadata).toMatchObject({ ...added, labels: { ...added.labels, app: 'one' } })
    await move('back', { source: { name: 'moving-1' } })
    await saved(ref, 'moving-2')
    expect((await api.get(pods, { namespace, name: 'moving-2' })).metadata).toMatchObject(added)
  })

  it('MP-02, MP-04: if its pod is deleted, the next one gets the memory', async () => {
    const ref = await create('deleted')
    await saved(ref, 'deleted-0')
    const seen = new Set<string>()
    const stop = new AbortController()
    const watching = statesOf(ref, stop.signal, seen)
    await api.delete(pods, { namespace, name: 'deleted-0' })
    await saved(ref, 'deleted-1')
    // The state follows the memory.
    await eventually(async () =>
      expect([...seen]).toEqual(expect.arrayContaining(['MigrationPending', 'Migrating', 'Running'])),
    )
    stop.abort()
    await watching
    const lastMove = { from: 'deleted-0', to: 'deleted-1', reason: 'PodDeleted' }
    await eventually(async () => expect((await get(ref)).status).toMatchObject({ lastMove }))
    expect(agents.stages.filter(stage => stage.startsWith('deleted-1 '))).toHaveLength(1)
  })

  it('undoes what others change in its set, and passes its own changes on', async () => {
    const ref = await create('kept')
    await saved(ref, 'kept-0')
    const { uid } = (await podsOf(ref))[0]?.metadata ?? {}
    // Another client scales the set again and again.
    for (const replicas of Array.from({ length: 40 }, (_, turn) => [3, 0][turn % 2])) {
      await api.patch(backupPodSets, ref, { type: 'merge', body: { spec: { replicas } } })
      expect((await podsOf(ref)).map(({ metadata }) => metadata.uid)).toEqual([uid])
    }
    await eventually(async () => expect((await setOf(ref)).spec.replicas).toBe(1))
    const other = { metadata: { labels: { app: 'one', tier: 'new' } }, spec: { containers } }
    const body = { spec: { template: other, checkpoint: { interval: '2s' } } }
    await api.patch(migratingPods, ref, { type: 'merge', body })
    await eventually(async () => {
      const { spec } = await setOf(ref)
      expect([spec.template.metadata?.labels, spec.checkpoint?.interval]).toEqual([
        { app: 'one', tier: 'new' },
        '2s',
      ])
    })
    await api.patch(migratingPods, ref, {
      type: 'merge',
      body: { spec: { template: { metadata: { labels: { tier: null } } } } },
    })
    await eventually(async () =>
      expect((await setOf(ref)).spec.template.metadata?.labels).toEqual({ app: 'one' }),
    )
    await reached(ref, 'Running', 'kept-0')
  })

  it('MP-04: is Invalid while its name is taken, and no longer', async () => {
    const ref = { namespace, name: 'taken' }
    const user = {
      apiVersion: 'backup.example.com/v1alpha1',
      kind: 'BackupPodSet',
      metadata: { name: 'taken' },
    }
    await api.create(backupPodSets, { ...user, spec: { replicas: 0, template } }, { namespace })
    await create('taken')
    const { status } = await reached(ref, 'Invalid')
    expect(status?.conditions?.[0]).toMatchObject({ type: 'Ready', status: 'False', reason: 'NameTaken' })
    expect((await setOf(ref)).spec.replicas).toBe(0)
    await api.delete(backupPodSets, ref)
    await saved(ref, 'taken-0')
  })

  it('is refused with a template whose memory cannot be kept, and tells what to change', async () => {
    const bad = { spec: { hostNetwork: true, containers } }
    const error = await create('refused', { template: bad }).catch((reason: unknown) => reason)
    expect(isKubeError(error, 'Invalid')).toBe(true)
    expect(String(error)).toMatch(/remove hostNetwork, hostPID and hostIPC from template.spec: memory/)
    await expect(create('x'.repeat(51))).rejects.toThrow(/at most 50 characters/)
  })
})
