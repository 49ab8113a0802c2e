// Long because every case needs the same operator, agents and nodes.
import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type BackupPodSet, type BackupPodSetSpec, backupPodSets } from '../../../src/api/backuppodset.ts'
import { annotations, deletionCostAnnotation, labels } from '../../../src/api/labels.ts'
import { memoryAllowed } from '../../../src/api/memory-permission.ts'
import { type NumberedSlotLease, parseNumberedSlotLease } from '../../../src/api/numbered-slot.ts'
import { isUnderstudy, wakeAnnotation } from '../../../src/api/pod-contract.ts'
import { type Api, createApi } from '../../../src/kube/api.ts'
import { loadConnection } from '../../../src/kube/connection.ts'
import {
  type EndpointSlice,
  endpointSlices,
  events,
  leases,
  namespaces,
  type Pod,
  pods,
  secrets,
  services,
} from '../../../src/kube/resources.ts'
import { tokenDigest } from '../../../src/slot/gate/token.ts'
import { eventually } from '../../support/eventually.ts'
import { type FakeKubelet, startFakeKubelet } from '../lib/fake-kubelet.ts'
import { startOperatorHere } from '../lib/operator-here.ts'
import { adminKubeconfig } from '../lib/plane.ts'
import { type FakeAgents, startFakeAgents } from './fake-agents.ts'

let api: Api
let kubelet: FakeKubelet
let agents: FakeAgents
let operator: AsyncDisposable
const namespace = `memory-${randomBytes(4).toString('hex')}`
const nodes = ['fake-p', 'fake-a', 'fake-b', 'fake-c']
/** Places primaries on a node of their own, and backups on the other node with the fewest pods of the set. */
const placed = new Map<string, string>()
const place = ({ metadata: { uid, labels: own } }: Pod, others: readonly Pod[]): string => {
  if (own?.[labels.type] === 'primary') return 'fake-p'
  // Remember placements here: pods that are created together do not show their nodes yet.
  const peers = others.filter(other => other.metadata.labels?.[labels.set] === own?.[labels.set])
  const load = (node: string) => peers.filter(other => placed.get(other.metadata.uid) === node).length
  const least = () =>
    ['fake-a', 'fake-b', 'fake-c'].reduce((best, node) => (load(node) < load(best) ? node : best))
  const node = placed.get(uid) ?? least()
  placed.set(uid, node)
  return node
}

beforeAll(async () => {
  api = createApi({ connection: await loadConnection({ kubeconfig: adminKubeconfig() }) })
  for (const name of [namespace, `${namespace}-agents`])
    await api.create(namespaces, { metadata: { name, labels: memoryAllowed } })
  kubelet = startFakeKubelet(api, namespace, { place })
  agents = await startFakeAgents(api, namespace, nodes)
  operator = startOperatorHere(namespace, { agentNamespace: `${namespace}-agents` })
})
afterAll(async () => {
  await operator[Symbol.asyncDispose]()
  await agents[Symbol.asyncDispose]()
  await kubelet[Symbol.asyncDispose]()
  await api.close()
})

async function create(name: string, spec: Partial<BackupPodSetSpec>) {
  const template = { spec: { containers: [{ name: 'app', image: 'app' }] } }
  const body = {
    apiVersion: 'backup.example.com/v1alpha1',
    kind: 'BackupPodSet',
    metadata: { name },
    spec: { template, checkpoint: {}, ...spec },
  }
  await api.create(backupPodSets, body, { namespace })
  return { namespace, name }
}
type Ref = Awaited<ReturnType<typeof create>>

const get = (ref: Ref) => api.get<BackupPodSet>(backupPodSets, ref)
const isLive = (pod: Pod) => pod.metadata.deletionTimestamp === undefined
const podsOf = async ({ name }: Ref, kind: string): Promise<Pod[]> =>
  (
    await api.list(pods, { namespace, labelSelector: `${labels.set}=${name},${labels.type}=${kind}` })
  ).items.filter(isLive)
const slotsOf = async ({ name }: Ref): Promise<NumberedSlotLease[]> =>
  (await api.list(leases, { namespace, labelSelector: `${labels.set}=${name}` })).items
    .flatMap(lease => parseNumberedSlotLease(lease) ?? [])
    .sort((a, b) => a.slot - b.slot)
const noted = ({ name }: Ref, reason: string) =>
  eventually(async () => {
    const { items } = await api.list(events, {
      namespace,
      fieldSelector: `regarding.name=${name},reason=${reason}`,
    })
    const [event] = items
    if (!event) throw new Error(`no event ${reason}`)
    return event
  })
const sliceOf = async (name: string) => api.get<EndpointSlice>(endpointSlices, { namespace, name })
const addressesOf = async (name: string) =>
  (await sliceOf(name)).endpoints?.flatMap(({ addresses }) => [...addresses]) ?? []

/** Waits until all pods are ready and every slot has a candidate. */
const covered = (ref: Ref, p: number, h: number) =>
  eventually(async () => {
    const { status } = await get(ref)
    expect([status?.readyReplicas, status?.readyHotbackups]).toEqual([p, h])
    const condition = status?.conditions?.find(({ type }) => type === 'CheckpointReady')
    expect(condition).toMatchObject({ status: 'True' })
    return slotsOf(ref)
  })
/** Waits until the only slot has this protection and that many cold backups wait. */
const protectedAs = (ref: Ref, protection: string, cold: number) =>
  eventually(async () => {
    const { status } = await get(ref)
    expect(status?.gatedColdbackups).toBe(cold)
    expect(status?.slots?.map(slot => slot.protection)).toEqual([protection])
    return slotsOf(ref)
  })
const holderOf = async (ref: Ref, slot: number): Promise<Pod> => {
  const all = await podsOf(ref, 'primary')
  const found = all.find(pod => pod.metadata.labels?.[labels.slot] === `${slot}`)
  if (!found) throw new Error(`nobody holds slot ${slot}`)
  return found
}

describe('D7.policy: the Leases of a set tell agents what it wants', () => {
  it('follows each edit, a pause too, and is paused when the set is deleted', async () => {
    const livenessProbe = { tcpSocket: { port: 80 } }
    const ref = await create('policed', {
      ...{ replicas: 2, hotBackups: 1, checkpoint: { interval: '30s' } },
      template: { spec: { containers: [{ name: 'app', image: 'app', livenessProbe }] } },
    })
    await covered(ref, 2, 1)
    const edit = (spec: Partial<BackupPodSetSpec>) =>
      api.patch(backupPodSets, ref, { type: 'merge', body: { spec } })
    const policies = (wanted: object) =>
      eventually(async () => {
        const slots = await slotsOf(ref)
        expect(slots.map(({ policy }) => policy)).toMatchObject([wanted, wanted])
        return slots
      })
    const { restoreHash = '' } = (await policies({ intervalMs: 30_000, paused: false, keep: 2 }))[0] ?? {}
    await edit({
      checkpoint: { interval: '20s', keep: 3 },
      failover: { liveness: { periodMilliseconds: 100 } },
    })
    const before = await policies({
      ...{ intervalMs: 20_000, keep: 3, restoreHash },
      liveness: { periodMs: 100, failureThreshold: 3 },
    })
    await edit({ paused: true })
    await policies({ intervalMs: 20_000, paused: true })
    await edit({ checkpoint: { interval: '10s' } })
    await policies({ intervalMs: 10_000, paused: true })
    await edit({ paused: false })
    const after = await policies({ intervalMs: 10_000, paused: false })
    const facts = ({ incarnation, holder, epoch, owner }: NumberedSlotLease) => ({
      incarnation,
      holder,
      epoch,
      owner,
    })
    expect(after.map(facts)).toEqual(before.map(facts))
    // No garbage collector runs here: the Leases stay.
    await api.delete(backupPodSets, ref)
    await policies({ intervalMs: 10_000, paused: true })
  })
})

describe('assignment', () => {
  it('D6.placement: a node that reports another processor has no heir, and nothing is promoted there', async () => {
    agents.machines.set('fake-p', { cpuFeatures: ['avx2', 'sse2'] })
    agents.machines.set('fake-a', { cpuFeatures: ['sse2'] })
    agents.machines.set('fake-b', { cpuFeatures: ['avx2', 'avx512f', 'sse2'] })
    await agents.report()
    const ref = await create('placed', { replicas: 1, hotBackups: 2 })
    const [slot] = await covered(ref, 1, 2)
    const backups = await podsOf(ref, 'hotbackup')
    expect(backups.map(({ spec }) => spec?.nodeName).sort()).toEqual(['fake-a', 'fake-b'])
    const fit = backups.find(({ spec }) => spec?.nodeName === 'fake-b')
    expect(slot?.heir?.uid).toBe(fit?.metadata.uid)
    expect(slot?.holders[0]).toBe('fake-b')
    await agents.declareDead(slot?.holder.name ?? '')
    await eventually(async () => expect((await slotsOf(ref))[0]?.holder.uid).toBe(fit?.metadata.uid))
    await api.delete(backupPodSets, ref)
    agents.machines.clear()
    await agents.report()
  })

  it('D9.lease: each slot has a Lease with its primary, a life, an heir off its node and the nodes that keep it', async () => {
    const ref = await create('assigned', { replicas: 2, hotBackups: 2 })
    const [first, second] = await covered(ref, 2, 2)
    for (const slot of [first, second]) {
      const holder = await holderOf(ref, slot?.slot ?? -1)
      expect(slot).toMatchObject({ epoch: 1, node: 'fake-p', holder: { uid: holder.metadata.uid } })
      expect(slot?.incarnation).toMatch(/^[0-9a-f]{8}$/)
      const heir = await api.get(pods, { namespace, name: slot?.heir?.name ?? '' })
      expect(slot?.heir).toMatchObject({ uid: heir.metadata.uid, ip: heir.status?.podIP })
      expect(slot?.holders[0]).toBe(heir.spec?.nodeName)
      expect(slot?.holders).toHaveLength(2)
      expect(slot?.holders).not.toContain('fake-p')
    }
    expect(first?.heir?.uid).not.toBe(second?.heir?.uid)
    expect(first?.incarnation).not.toBe(second?.incarnation)
  })

  it('D3.copies: as many nodes keep a slot as the set says', async () => {
    const ref = await create('copied', { replicas: 1, hotBackups: 1, checkpoint: { copies: 1 } })
    const [one] = await covered(ref, 1, 1)
    expect(one?.holders).toHaveLength(1)
    await api.patch(backupPodSets, ref, { type: 'merge', body: { spec: { checkpoint: { copies: 3 } } } })
    await eventually(async () => {
      const holders = new Set((await slotsOf(ref))[0]?.holders)
      expect(holders.size).toBe(3)
      expect(holders).not.toContain('fake-p')
    })
  })

  it('one understudy covers three primaries, and a second one takes its share', async () => {
    const ref = await create('shared', { replicas: 3, hotBackups: 1 })
    const before = await covered(ref, 3, 1)
    expect(new Set(before.map(({ heir }) => heir?.uid)).size).toBe(1)
    await api.patch(backupPodSets, ref, { type: 'merge', body: { spec: { hotBackups: 3 } } })
    const after = await eventually(async () => {
      const slots = await slotsOf(ref)
      expect(new Set(slots.map(({ heir }) => heir?.uid)).size).toBe(3)
      return slots
    })
    expect(after.map(({ incarnation }) => incarnation)).toEqual(before.map(({ incarnation }) => incarnation))
  })

  it('D9.life: a slot that is not wanted any more loses its Lease, and its number begins another life', async () => {
    const ref = await create('forgetful', { replicas: 2, hotBackups: 1, checkpoint: { retain: '0s' } })
    const before = await covered(ref, 2, 1)
    await api.patch(backupPodSets, ref, { type: 'merge', body: { spec: { replicas: 1 } } })
    const [left] = await eventually(async () => {
      const slots = await slotsOf(ref)
      expect(slots).toHaveLength(1)
      return slots
    })
    expect(before.find(({ slot }) => slot === left?.slot)?.incarnation).toBe(left?.incarnation)
    await api.patch(backupPodSets, ref, { type: 'merge', body: { spec: { replicas: 2 } } })
    const after = await covered(ref, 2, 1)
    expect(after.map(({ slot }) => slot)).toEqual([0, 1])
    const lives = new Set(before.map(({ incarnation }) => incarnation))
    expect(after.filter(({ incarnation }) => lives.has(incarnation))).toHaveLength(1)
  })
})

describe('keys of generations on disks', () => {
  it('D9.key-life: half of a key is with the Lease of its slot: it stays through failovers and ends with the life', async () => {
    const ref = await create('sealed', { replicas: 2, hotBackups: 2, checkpoint: { retain: '0s' } })
    const before = await covered(ref, 2, 2)
    for (const { seal } of before) expect(seal).toMatch(/^[0-9a-f]{64}$/)
    expect(before[0]?.seal).not.toBe(before[1]?.seal)
    const [object] = (await api.list(leases, { namespace, labelSelector: `${labels.set}=sealed` })).items
    // The garbage collector deletes it with the set.
    expect(object?.metadata.ownerReferences).toMatchObject([
      { kind: 'BackupPodSet', name: 'sealed', controller: true },
    ])
    await agents.declareDead(before[1]?.holder.name ?? '')
    const after = await eventually(async () => {
      const slots = await slotsOf(ref)
      expect(slots[1]?.epoch).toBe(2)
      return slots
    })
    expect(after.map(({ seal }) => seal)).toEqual(before.map(({ seal }) => seal))
    await covered(ref, 2, 2)
    await api.patch(backupPodSets, ref, { type: 'merge', body: { spec: { replicas: 1 } } })
    await eventually(async () => expect(await slotsOf(ref)).toHaveLength(1))
    await api.patch(backupPodSets, ref, { type: 'merge', body: { spec: { replicas: 2 } } })
    const anew = await covered(ref, 2, 2)
    const seals = new Set(before.map(({ seal }) => seal))
    expect(anew.filter(({ seal }) => seals.has(seal))).toHaveLength(1)
  })

  it('D9.key-made: the operator makes the agents’ half once a set keeps memory', async () => {
    const key = await eventually(() =>
      api.get(secrets, { namespace: `${namespace}-agents`, name: 'understudy-generations-key' }),
    )
    expect(Buffer.from(key.data?.['key'] ?? '', 'base64')).toHaveLength(32)
  })
})

describe('disks of nodes', () => {
  it('a set says of which slots nothing new is written to any disk, and when that is over', async () => {
    const ref = await create('diskless', { replicas: 1, hotBackups: 1 })
    const [slot] = await covered(ref, 1, 1)
    const said = (reason: string) =>
      eventually(async () => {
        const { conditions = [] } = (await get(ref)).status ?? {}
        const condition = conditions.find(({ type }) => type === 'CheckpointReady')
        expect(condition).toMatchObject({ status: 'True', reason })
        return condition?.message
      })
    for (const node of slot?.holders ?? []) agents.diskTrouble.set(node, 'DiskLow')
    await agents.report()
    expect(await said('NotOnDisk')).toContain('slot 0 is on no disk')
    await noted(ref, 'NotOnDisk')
    agents.diskTrouble.clear()
    await agents.report()
    await said('AllProtected')
    await api.delete(backupPodSets, ref)
  })
})

describe('failover with memory', () => {
  it('a death: the heir takes the slot with the next epoch and the same life; the loser retires and goes', async () => {
    const ref = await create('death', { replicas: 2, hotBackups: 2 })
    const slots = await covered(ref, 2, 2)
    const lost = slots[1]
    if (lost?.heir === undefined) throw new Error('no heir')
    await agents.declareDead(lost.holder.name)
    const heir = await eventually(async () => {
      const pod = await holderOf(ref, 1)
      expect(pod.metadata.uid).toBe(lost.heir?.uid)
      return pod
    })
    expect(heir.metadata.annotations?.[annotations.epoch]).toBe('2')
    expect((await slotsOf(ref))[1]).toMatchObject({
      epoch: 2,
      incarnation: lost.incarnation,
      node: heir.spec?.nodeName,
      holder: { uid: heir.metadata.uid },
    })
    await eventually(async () => expect(await podsOf(ref, 'retired')).toEqual([]))
    await eventually(() =>
      expect(api.get(pods, { namespace, name: lost.holder.name })).rejects.toMatchObject({
        code: 'NotFound',
      }),
    )
    const [other] = slots
    expect((await slotsOf(ref))[0]).toMatchObject({
      incarnation: other?.incarnation,
      epoch: 1,
      holder: other?.holder,
    })
    await covered(ref, 2, 2)
    const lastFailover = await eventually(async () => {
      const seen = (await get(ref)).status?.lastFailover
      expect(seen).toMatchObject({ slot: 1, reason: 'Died', to: heir.metadata.name, generation: 1 })
      return seen
    })
    expect(Object.keys(lastFailover?.phases ?? {}).sort()).toEqual(['lease', 'published', 'serving'])
    expect((await noted(ref, 'FailedOver')).note).toMatch(/generation 1\) was \d+\.\d s old/)
  })

  it('D7.loser: the loser is off stage only when its successor is on it, and is not deleted for two seconds more', async () => {
    const ref = await create('order', { replicas: 1, hotBackups: 1 })
    const [slot] = await covered(ref, 1, 1)
    const heir = slot?.heir?.name ?? ''
    agents.mute.add(heir)
    await agents.declareDead(slot?.holder.name ?? '')
    await eventually(async () => expect((await slotsOf(ref))[0]?.holder.name).toBe(heir))
    // The heir is called, but not on stage yet: the slot shows no other primary, and the operator creates no pod in its
    // place.
    expect((await podsOf(ref, 'primary')).map(({ metadata }) => metadata.name)).toEqual([slot?.holder.name])
    expect(await podsOf(ref, 'retired')).toEqual([])
    const seen = new AbortController()
    const loserAs: (string | undefined)[] = []
    const watching = (async () => {
      const query = { namespace, labelSelector: `${labels.set}=order` }
      try {
        for await (const event of api.watch(pods, query, { signal: seen.signal }))
          if (event.type === 'MODIFIED' && event.object.metadata.name === slot?.holder.name)
            loserAs.push(event.object.metadata.labels?.[labels.type])
      } catch (error) {
        if (!seen.signal.aborted) throw error
      }
    })()
    agents.mute.delete(heir)
    await api.patch(
      pods,
      { namespace, name: heir },
      { type: 'merge', body: { metadata: { annotations: { look: '1' } } } },
    )
    // Before the look that shows it: a busy machine may show it late.
    let onStageAt = performance.now()
    await eventually(async () => {
      const lookedAt = performance.now()
      const primaries = (await podsOf(ref, 'primary')).map(({ metadata }) => metadata.name)
      if (!primaries.includes(heir)) onStageAt = lookedAt
      expect(primaries).toEqual([heir])
    })
    await eventually(async () => {
      const left = [...(await podsOf(ref, 'primary')), ...(await podsOf(ref, 'retired'))]
      expect(left.map(({ metadata }) => metadata.name)).toEqual([heir])
    })
    expect(performance.now() - onStageAt).toBeGreaterThan(1_500)
    // A look once in a while may miss it.
    await eventually(() => expect(loserAs).toContain('retired'))
    seen.abort()
    await watching
  })

  it('a deletion: nobody takes over before the agent says that the app is stopped', async () => {
    const ref = await create('deletion', { replicas: 1, hotBackups: 1 })
    const [slot] = await covered(ref, 1, 1)
    const name = slot?.holder.name ?? ''
    kubelet.lingering.add(name)
    await api.delete(pods, { namespace, name })
    await eventually(async () => expect((await get(ref)).status?.replicas).toBe(0))
    expect((await slotsOf(ref))[0]?.holder.name).toBe(name)
    await agents.declareDead(name)
    const heir = await eventually(() => holderOf(ref, 0))
    expect(heir.metadata.uid).toBe(slot?.heir?.uid)
    expect((await slotsOf(ref))[0]).toMatchObject({ incarnation: slot?.incarnation, epoch: 2 })
    kubelet.lingering.delete(name)
    kubelet.look()
    await covered(ref, 1, 1)
    await eventually(async () =>
      expect((await get(ref)).status?.lastFailover).toMatchObject({ reason: 'PodDeleted', from: name }),
    )
  })

  it('a pod that cannot be brought on stage is passed over for the next one', async () => {
    const ref = await create('second', { replicas: 1, hotBackups: 2 })
    const [slot] = await covered(ref, 1, 2)
    await eventually(async () => {
      const able = (await podsOf(ref, 'hotbackup')).map(({ spec }) => spec?.nodeName).sort()
      expect((await get(ref)).status?.slots?.[0]?.usableOn).toEqual(able)
    })
    const heir = slot?.heir?.name ?? ''
    agents.failing.add(heir)
    await agents.declareDead(slot?.holder.name ?? '')
    const successor = await eventually(async () => {
      const pod = await holderOf(ref, 0)
      expect(pod.metadata.name).not.toBe(slot?.holder.name)
      return pod
    })
    expect(successor.metadata.name).not.toBe(heir)
    expect((await slotsOf(ref))[0]).toMatchObject({
      epoch: 3,
      incarnation: slot?.incarnation,
      holder: { uid: successor.metadata.uid },
    })
    expect((await noted(ref, 'PromotionFailed')).note).toContain('the image is torn')
  })

  it('a set that is made smaller gives up the cheapest primary, says so, and has it back with its memory in time', async () => {
    const ref = await create('smaller', { replicas: 2, hotBackups: 1 })
    const before = await covered(ref, 2, 1)
    const cost = { [deletionCostAnnotation]: '-1' }
    const cheap = before[1]
    if (cheap === undefined) throw new Error('no second slot')
    await api.patch(
      pods,
      { namespace, name: cheap.holder.name },
      { type: 'merge', body: { metadata: { annotations: cost } } },
    )
    const scale = (replicas: number, checkpoint = {}) =>
      api.patch(backupPodSets, ref, { type: 'merge', body: { spec: { replicas, checkpoint } } })
    await scale(1)
    await eventually(async () => {
      const left = await podsOf(ref, 'primary')
      expect(left.map(({ metadata }) => metadata.name)).toEqual([before[0]?.holder.name])
      expect((await get(ref)).status?.retainedSlots).toMatchObject([{ slot: 1, pod: cheap.holder.name }])
    })
    expect((await noted(ref, 'SlotRetained')).note).toContain(`slot 1 (${cheap.holder.name})`)
    await scale(2)
    await eventually(async () => {
      const now = (await slotsOf(ref))[1]
      expect(now).toMatchObject({ slot: 1, incarnation: cheap.incarnation, epoch: 2 })
      expect(now).not.toHaveProperty('retainedSince')
      expect((await holderOf(ref, 1)).metadata.uid).toBe(now?.holder.uid)
      expect((await get(ref)).status).not.toHaveProperty('retainedSlots')
    })
    await noted(ref, 'SlotReclaimed')
    await covered(ref, 2, 1)
    // The set scales to 0 and retains both slots; then the retention ends.
    await scale(0)
    await eventually(async () => expect((await get(ref)).status?.retainedSlots).toHaveLength(2))
    await scale(0, { retain: '0s' })
    await eventually(async () => expect(await slotsOf(ref)).toEqual([]))
    await noted(ref, 'SlotForgotten')
  })

  it('D16.asleep: a suspended set has no pods and keeps its slots, says where, and has them back with their memory', async () => {
    const ref = await create('asleep', { replicas: 2, hotBackups: 1, checkpoint: { retain: '0s' } })
    const before = await covered(ref, 2, 1)
    const suspend = (value: boolean) =>
      api.patch(backupPodSets, ref, { type: 'merge', body: { spec: { suspend: value } } })
    const wordOf = async () => {
      const { status } = await get(ref)
      return status?.conditions?.find(({ type }) => type === 'Suspended')
    }
    // Its agent does not save one of them: that one runs on, and the other one has ended.
    const [sleeper, waking] = before.map(({ holder }) => holder.name)
    if (sleeper === undefined || waking === undefined) throw new Error('no two slots')
    agents.deaf.add(waking)
    await suspend(true)
    await eventually(async () => {
      const left = await podsOf(ref, 'primary')
      expect(left.map(({ metadata }) => metadata.name)).toEqual([waking])
      expect(await wordOf()).toMatchObject({ status: 'False', reason: 'Saving' })
    })
    agents.deaf.delete(waking)
    await agents.report()
    await eventually(async () => {
      const { items } = await api.list(pods, { namespace, labelSelector: `${labels.set}=${ref.name}` })
      expect(items.filter(isLive)).toEqual([])
      expect(await wordOf()).toMatchObject({ status: 'True', reason: 'Suspended' })
      const { status } = await get(ref)
      expect(status?.retainedSlots).toMatchObject([
        { slot: 0, pod: before[0]?.holder.name, bytes: 4096 },
        { slot: 1, pod: before[1]?.holder.name },
      ])
      for (const kept of status?.retainedSlots ?? []) {
        expect(kept.keptOn.length).toBeGreaterThan(1)
        expect(kept).not.toHaveProperty('until')
      }
      expect(status?.summary?.replicas).toBe('0/2')
    })
    expect((await noted(ref, 'SlotSuspended')).note).toContain('until spec.suspend is false')
    await suspend(false)
    const after = await covered(ref, 2, 1)
    expect(after.map(({ incarnation }) => incarnation)).toEqual(before.map(({ incarnation }) => incarnation))
    expect(after.map(({ epoch }) => epoch)).toEqual([2, 2])
    for (const slot of after) expect(slot).not.toHaveProperty('suspended')
    await noted(ref, 'SlotResumed')
    expect(await wordOf()).toBeUndefined()
    // Its return was intended: it is no failover.
    expect((await get(ref)).status).not.toHaveProperty('lastFailover')
    await api.delete(backupPodSets, ref)
  })

  it('nobody can bring its memory back for as long as the set waits: the slot begins anew in a new pod, and says so', async () => {
    const ref = await create('empty', {
      replicas: 1,
      hotBackups: 1,
      checkpoint: { giveUpAfterSeconds: 3 },
    })
    const [slot] = await covered(ref, 1, 1)
    const hot = slot?.heir?.name ?? ''
    // Restores fail in the hot backup, and then in a pod created for the slot.
    agents.failing.add('all')
    await agents.declareDead(slot?.holder.name ?? '')
    const fresh = await eventually(async () => {
      const pod = await holderOf(ref, 0)
      expect([slot?.holder.name, hot]).not.toContain(pod.metadata.name)
      return pod
    })
    agents.failing.delete('all')
    expect(isUnderstudy(fresh)).toBe(false)
    const lease = await eventually(async () => {
      const [now] = await slotsOf(ref)
      expect(now?.holder.uid).toBe(fresh.metadata.uid)
      return now
    })
    expect(lease?.incarnation).not.toBe(slot?.incarnation)
    expect(lease?.epoch).toBeGreaterThan(2)
    await noted(ref, 'RestoredEmpty')
    await eventually(async () => expect((await get(ref)).status?.lastFailover?.how).toBe('Empty'))
  })

  it('D6.cold: no hot backup is left: a cold one is woken and gets the memory, and a new one takes its place', async () => {
    const ref = await create('cold', { replicas: 1, hotBackups: 0, coldBackups: 1 })
    const [slot] = await protectedAs(ref, 'Cold', 1)
    const [cold] = await podsOf(ref, 'coldbackup')
    // Its node holds a copy, in preference to other possible nodes.
    expect(slot?.holders[0]).toBe(cold?.spec?.nodeName)
    await agents.declareDead(slot?.holder.name ?? '')
    const successor = await eventually(async () => {
      const pod = await holderOf(ref, 0)
      expect(pod.metadata.uid).toBe(cold?.metadata.uid)
      return pod
    })
    expect((await slotsOf(ref))[0]).toMatchObject({
      incarnation: slot?.incarnation,
      epoch: 2,
      holder: { uid: successor.metadata.uid },
      ip: successor.status?.podIP,
    })
    const lastFailover = await eventually(async () => {
      const seen = (await get(ref)).status?.lastFailover
      expect(seen).toMatchObject({ how: 'Cold', generation: 1, to: successor.metadata.name })
      return seen
    })
    expect(Object.keys(lastFailover?.phases ?? {}).sort()).toEqual(['lease', 'published', 'serving', 'woken'])
    await eventually(async () => expect(await podsOf(ref, 'coldbackup')).toHaveLength(1))
  })

  it('D7.cold-wake: a gate that does not answer is opened by its node, with a message that only this gate takes', async () => {
    const ref = await create('second-door', { replicas: 1, hotBackups: 0, coldBackups: 1, wakeupTimeout: 10 })
    const [slot] = await protectedAs(ref, 'Cold', 1)
    const [cold] = await podsOf(ref, 'coldbackup')
    const name = cold?.metadata.name ?? ''
    kubelet.silent.add(name)
    await agents.declareDead(slot?.holder.name ?? '')
    const order = await eventually(async () => {
      const pod = await api.get(pods, { namespace, name })
      const written = pod.metadata.annotations?.[wakeAnnotation]
      expect(written).toMatch(/^primary [0-9a-f]{64}$/)
      return written
    })
    const digest = cold?.spec?.initContainers?.[0]?.command
    expect(digest).toContain(tokenDigest(order?.split(' ')[1] ?? ''))
    // The node's agent does this once it has delivered the message.
    kubelet.open(name)
    await eventually(async () => expect((await holderOf(ref, 0)).metadata.uid).toBe(cold?.metadata.uid))
    expect((await slotsOf(ref))[0]).toMatchObject({ incarnation: slot?.incarnation, epoch: 2 })
  })

  it('D6.fresh: no backup is left: a pod is made where the memory is, and gets it', async () => {
    const ref = await create('fresh', { replicas: 1, hotBackups: 0, coldBackups: 0 })
    const [slot] = await protectedAs(ref, 'Cold', 0)
    await agents.declareDead(slot?.holder.name ?? '')
    const successor = await eventually(async () => {
      const pod = await holderOf(ref, 0)
      expect(pod.metadata.name).not.toBe(slot?.holder.name)
      return pod
    })
    expect(isUnderstudy(successor)).toBe(true)
    expect((await slotsOf(ref))[0]).toMatchObject({
      incarnation: slot?.incarnation,
      epoch: 2,
      holder: { uid: successor.metadata.uid },
    })
    const near = successor.spec?.affinity?.nodeAffinity?.preferredDuringSchedulingIgnoredDuringExecution
    const names = near?.flatMap(({ preference }) => preference.matchFields?.[0]?.values ?? []) ?? []
    expect([...names].sort()).toEqual([...(slot?.holders ?? [])].sort())
    await eventually(async () =>
      expect((await get(ref)).status?.lastFailover).toMatchObject({ how: 'Created', generation: 1 }),
    )
    expect(await podsOf(ref, 'hotbackup')).toEqual([])
  })

  it('a restart in place that nobody takes over: once StateLost, and a new life', async () => {
    const ref = await create('restarted', { replicas: 1, hotBackups: 1 })
    const [slot] = await covered(ref, 1, 1)
    const name = slot?.holder.name ?? ''
    // Its own node has a copy, like any holder.
    for (const node of [...(slot?.holders ?? []), slot?.node ?? '']) agents.emptied.add(node)
    await agents.report()
    await eventually(async () => {
      const condition = (await get(ref)).status?.conditions?.find(({ type }) => type === 'CheckpointReady')
      expect(condition).toMatchObject({ status: 'False', reason: 'NotSaved' })
    })
    kubelet.restarted.set(name, new Date())
    kubelet.look()
    const [anew] = await eventually(async () => {
      const now = await slotsOf(ref)
      expect(now[0]?.incarnation).not.toBe(slot?.incarnation)
      return now
    })
    expect(anew).toMatchObject({ epoch: 1, holder: slot?.holder })
    await noted(ref, 'StateLost')
    agents.emptied.clear()
    await agents.report()
    const [same] = await covered(ref, 1, 1)
    expect(same?.incarnation).toBe(anew?.incarnation)
  })
})

describe('Services', () => {
  it('D7.one-write: a failover is one write of the endpoints, in the Service of all and in that of the slot', async () => {
    const ref = await create('served', {
      replicas: 2,
      hotBackups: 2,
      service: { name: 'served-all', ports: [{ name: 'http', port: 80, targetPort: 8080 }], perSlot: true },
    })
    const slots = await covered(ref, 2, 2)
    const lost = slots[0]
    if (lost?.heir === undefined) throw new Error('no heir')
    const names = ['served-all-understudy-0', 'served-0-understudy-0', 'served-1-understudy-0']
    await eventually(async () => expect(await addressesOf(names[0] ?? '')).toHaveLength(2))
    const service = await api.get(services, { namespace, name: 'served-0' })
    expect(service.spec).toMatchObject({
      type: 'ClusterIP',
      ports: [{ name: 'http', port: 80, targetPort: 8080 }],
    })
    expect(service.spec?.selector).toBeUndefined()
    expect(service.metadata.ownerReferences?.[0]?.name).toBe('served')
    const before = await Promise.all(names.map(sliceOf))
    const seen = new AbortController()
    const added: string[] = []
    const writes: string[] = []
    const watching = (async () => {
      const query = { namespace, labelSelector: `${labels.set}=served` }
      try {
        for await (const event of api.watch(endpointSlices, query, { signal: seen.signal })) {
          if (event.type === 'ADDED') added.push(event.object.metadata.name)
          if (event.type === 'MODIFIED')
            writes.push(
              `${event.object.metadata.name} ${event.object.endpoints?.map(({ addresses }) => addresses.join()).join()}`,
            )
        }
      } catch (error) {
        if (!seen.signal.aborted) throw error
      }
    })()
    // A watch that begins later shows a slice as the failover has left it.
    await eventually(() => expect(added.toSorted()).toEqual(names.toSorted()))
    await agents.declareDead(lost.holder.name)
    await eventually(async () => expect(await addressesOf(names[1] ?? '')).toEqual([lost.heir?.ip]))
    const after = await covered(ref, 2, 2)
    await eventually(async () => expect(await podsOf(ref, 'retired')).toEqual([]))
    await eventually(() => expect(writes.length).toBeGreaterThanOrEqual(2))
    seen.abort()
    await watching
    const other = (await holderOf(ref, 1)).status?.podIP
    expect(writes.sort()).toEqual([
      `served-0-understudy-0 ${lost.heir.ip}`,
      `served-all-understudy-0 ${lost.heir.ip},${other}`,
    ])
    expect(after[0]?.holder.uid).toBe(lost.heir.uid)
    expect((await sliceOf(names[2] ?? '')).metadata.resourceVersion).toBe(before[2]?.metadata.resourceVersion)
    // The address outlives the failover.
    expect((await api.get(services, { namespace, name: 'served-0' })).spec?.clusterIP).toBe(
      service.spec?.clusterIP,
    )
  })

  it('follow the spec, and go with it; also without memory', async () => {
    const ref = await create('plain', {
      replicas: 1,
      service: { name: 'plain-all', ports: [{ port: 80 }] },
      hotBackup: { mode: 'Warm' },
    })
    const address = await eventually(async () => {
      const ip = (await holderOf(ref, 0)).status?.podIP
      expect(await addressesOf('plain-all-understudy-0')).toEqual([ip])
      return ip
    })
    expect(address).toBeDefined()
    const change = (service: object | null) =>
      api.patch(backupPodSets, ref, { type: 'merge', body: { spec: { service } } })
    await change({ ports: [{ port: 81, targetPort: 8081 }] })
    await eventually(async () => {
      const { spec } = await api.get(services, { namespace, name: 'plain-all' })
      expect(spec?.ports).toMatchObject([{ port: 81, targetPort: 8081 }])
      expect((await sliceOf('plain-all-understudy-0')).ports).toMatchObject([{ port: 8081 }])
    })
    // From outside: the node port stays when the ports change, and goes with the type. A namespace has to allow it; the operator here is
    // an administrator.
    const served = async () => (await api.get(services, { namespace, name: 'plain-all' })).spec
    await change({ type: 'LoadBalancer' })
    const nodePort = await eventually(async () => {
      const spec = await served()
      expect(spec?.type).toBe('LoadBalancer')
      return spec?.ports?.[0]?.nodePort
    })
    expect(nodePort).toBeGreaterThan(0)
    await change({ ports: [{ port: 82, targetPort: 8081 }] })
    await eventually(async () => expect((await served())?.ports).toMatchObject([{ port: 82, nodePort }]))
    await change({ type: null })
    await eventually(async () => {
      const spec = await served()
      expect(spec?.type).toBe('ClusterIP')
      expect(spec?.ports?.[0]?.nodePort).toBeUndefined()
    })
    await change(null)
    await eventually(() =>
      expect(api.get(services, { namespace, name: 'plain-all' })).rejects.toMatchObject({ code: 'NotFound' }),
    )
    await eventually(() =>
      expect(sliceOf('plain-all-understudy-0')).rejects.toMatchObject({ code: 'NotFound' }),
    )
  })
})
