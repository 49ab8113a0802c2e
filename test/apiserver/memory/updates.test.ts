import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type BackupPodSet, type BackupPodSetSpec, backupPodSets } from '../../../src/api/backuppodset.ts'
import { labels } from '../../../src/api/labels.ts'
import { memoryAllowed } from '../../../src/api/memory-permission.ts'
import { type NumberedSlotLease, parseNumberedSlotLease } from '../../../src/api/numbered-slot.ts'
import { type Api, createApi } from '../../../src/kube/api.ts'
import { loadConnection } from '../../../src/kube/connection.ts'
import {
  controllerRevisions,
  events,
  leases,
  namespaces,
  type Pod,
  pods,
} from '../../../src/kube/resources.ts'
import { eventually } from '../../support/eventually.ts'
import { type FakeKubelet, startFakeKubelet } from '../lib/fake-kubelet.ts'
import { startOperatorHere } from '../lib/operator-here.ts'
import { adminKubeconfig } from '../lib/plane.ts'
import { type FakeAgents, startFakeAgents } from './fake-agents.ts'

let api: Api
let kubelet: FakeKubelet
let agents: FakeAgents
let operator: AsyncDisposable
const namespace = `updates-${randomBytes(4).toString('hex')}`
const nodes = ['update-a', 'update-b', 'update-c']
/** Places a pod on the node with the fewest pods of the set, so that understudies are apart from primaries. */
const placed = new Map<string, string>()
const place = ({ metadata: { uid, labels: own } }: Pod, others: readonly Pod[]): string => {
  const peers = others.filter(other => other.metadata.labels?.[labels.set] === own?.[labels.set])
  const load = (node: string) => peers.filter(other => placed.get(other.metadata.uid) === node).length
  const node = placed.get(uid) ?? nodes.reduce((best, other) => (load(other) < load(best) ? other : best))
  placed.set(uid, node)
  return node
}

beforeAll(async () => {
  api = createApi({ connection: await loadConnection({ kubeconfig: adminKubeconfig() }) })
  await api.create(namespaces, { metadata: { name: namespace, labels: memoryAllowed } })
  kubelet = startFakeKubelet(api, namespace, { place })
  agents = await startFakeAgents(api, namespace, nodes)
  operator = startOperatorHere(namespace)
})
afterAll(async () => {
  await operator[Symbol.asyncDispose]()
  await agents[Symbol.asyncDispose]()
  await kubelet[Symbol.asyncDispose]()
  await api.close()
})

const template = (image: string, note: string) => ({
  metadata: { annotations: { note } },
  spec: { containers: [{ name: 'app', image }] },
})

async function create(name: string, spec: Partial<BackupPodSetSpec> = {}) {
  const body = {
    apiVersion: 'backup.example.com/v1alpha1',
    kind: 'BackupPodSet',
    metadata: { name },
    spec: { template: template('app:1', 'first'), checkpoint: {}, replicas: 1, hotBackups: 1, ...spec },
  }
  await api.create(backupPodSets, body, { namespace })
  const ref = { namespace, name }
  await covered(ref)
  return ref
}
type Ref = { namespace: string; name: string }

const get = (ref: Ref) => api.get<BackupPodSet>(backupPodSets, ref)
const edit = (ref: Ref, spec: object) => api.patch(backupPodSets, ref, { type: 'merge', body: { spec } })
const podsOf = async ({ name }: Ref): Promise<Pod[]> =>
  (
    await api.list(pods, { namespace, labelSelector: `${labels.set}=${name},${labels.type}!=retired` })
  ).items.filter(pod => pod.metadata.deletionTimestamp === undefined)
const slotOf = async ({ name }: Ref): Promise<NumberedSlotLease> => {
  const { items } = await api.list(leases, { namespace, labelSelector: `${labels.set}=${name}` })
  const [slot] = items.flatMap(lease => parseNumberedSlotLease(lease) ?? [])
  if (slot === undefined) throw new Error('no slot')
  return slot
}
const conditionOf = async (ref: Ref, type: string) => {
  const { metadata, status } = await get(ref)
  if (status?.observedGeneration !== metadata.generation) throw new Error('not observed yet')
  return status?.conditions?.find(condition => condition.type === type)
}
const eventsOf = async ({ name }: Ref, reason: string) =>
  (await api.list(events, { namespace, fieldSelector: `regarding.name=${name},reason=${reason}` })).items
const covered = (ref: Ref) =>
  eventually(async () => {
    expect(await conditionOf(ref, 'CheckpointReady')).toMatchObject({ status: 'True' })
    expect(await conditionOf(ref, 'Ready')).toMatchObject({ status: 'True' })
  })
const imagesOf = async (ref: Ref) => new Set((await podsOf(ref)).map(pod => pod.spec?.containers[0]?.image))
const notesOf = async (ref: Ref) =>
  new Set((await podsOf(ref)).map(pod => pod.metadata.annotations?.['note']))

describe('a changed template of a set that keeps memory', () => {
  it('rolls slots with their memory where it fits the new one', async () => {
    const ref = await create('fits', { updateStrategy: { type: 'RollingUpdate' } })
    const { incarnation, holder } = await slotOf(ref)
    await edit(ref, { template: template('app:1', 'second') })
    await eventually(async () => expect(await notesOf(ref)).toEqual(new Set(['second'])))
    await covered(ref)
    const after = await slotOf(ref)
    expect(after).toMatchObject({ incarnation, handover: undefined })
    expect(after.holder.uid).not.toBe(holder.uid)
    expect(await eventsOf(ref, 'StateWillBeLost')).toEqual([])
    expect(await eventsOf(ref, 'RestoredEmpty')).toEqual([])
    // No pod of the first revision is left that would need it.
    await eventually(async () => {
      const { items } = await api.list(controllerRevisions, {
        namespace,
        labelSelector: `${labels.set}=${ref.name}`,
      })
      expect(items).toHaveLength(1)
    })
  })

  it('changes nothing under OnDelete where it does not, says so once, and a death still brings the memory back', async () => {
    const ref = await create('stays')
    const { incarnation, holder } = await slotOf(ref)
    const before = (await podsOf(ref)).map(({ metadata }) => metadata.uid).sort()
    await edit(ref, { template: template('app:2', 'second') })
    await eventually(async () =>
      expect(await conditionOf(ref, 'Progressing')).toMatchObject({
        status: 'False',
        reason: 'UpdateOnDelete',
      }),
    )
    expect(await conditionOf(ref, 'Ready')).toMatchObject({ status: 'True' })
    expect((await podsOf(ref)).map(({ metadata }) => metadata.uid).sort()).toEqual(before)
    await eventually(async () => expect(await eventsOf(ref, 'UpdateOnDelete')).toHaveLength(1))

    await agents.declareDead(holder.name)
    await eventually(async () => {
      const slot = await slotOf(ref)
      expect(slot.incarnation).toBe(incarnation)
      expect(slot.epoch).toBe(2)
    })
    await covered(ref)
    // The understudy that took its place has the older template: the memory fits no other.
    expect(await imagesOf(ref)).toEqual(new Set(['app:1']))
    expect((await slotOf(ref)).incarnation).toBe(incarnation)
  })

  it('is not rolled where it would cost memory, until the set says that it may', async () => {
    const ref = await create('asks', { updateStrategy: { type: 'RollingUpdate' } })
    const { incarnation } = await slotOf(ref)
    await edit(ref, { template: template('app:2', 'second') })
    await eventually(async () =>
      expect(await conditionOf(ref, 'Degraded')).toMatchObject({
        status: 'True',
        reason: 'UpdateWouldLoseState',
      }),
    )
    expect(await imagesOf(ref)).toEqual(new Set(['app:1']))
    expect((await slotOf(ref)).incarnation).toBe(incarnation)

    await edit(ref, { updateStrategy: { allowStateLoss: true } })
    await eventually(async () => expect(await imagesOf(ref)).toEqual(new Set(['app:2'])))
    await covered(ref)
    expect((await slotOf(ref)).incarnation).not.toBe(incarnation)
    const [event] = await eventsOf(ref, 'StateWillBeLost')
    const said = Date.parse(event?.eventTime ?? '')
    for (const pod of await podsOf(ref))
      expect(Date.parse(pod.metadata.creationTimestamp ?? '') + 1_000).toBeGreaterThan(said)
  })
})
