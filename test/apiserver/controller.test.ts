// Long because every case needs the same operator and fake kubelet.
import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type BackupPodSet, type BackupPodSetSpec, backupPodSets } from '../../src/api/backuppodset.ts'
import { annotations, labels, type PodKind } from '../../src/api/labels.ts'
import { type Api, createApi } from '../../src/kube/api.ts'
import { loadConnection } from '../../src/kube/connection.ts'
import { customResourceDefinitions, events, namespaces, type Pod, pods } from '../../src/kube/resources.ts'
import { eventually } from '../support/eventually.ts'
import { type FakeKubelet, startFakeKubelet } from './lib/fake-kubelet.ts'
import { type OperatorProcess, startOperator } from './lib/operator-process.ts'
import { adminKubeconfig } from './lib/plane.ts'

let api: Api
let kubelet: FakeKubelet
let operator: OperatorProcess
const namespace = `controller-${randomBytes(4).toString('hex')}`

beforeAll(async () => {
  api = createApi({ connection: await loadConnection({ kubeconfig: adminKubeconfig() }) })
  await api.create(namespaces, { metadata: { name: namespace } })
  kubelet = startFakeKubelet(api, namespace)
  operator = startOperator(adminKubeconfig(), namespace, '--no-leader-elect')
  await operator.leading()
})
afterAll(async () => {
  await operator[Symbol.asyncDispose]()
  await kubelet[Symbol.asyncDispose]()
  await api.close()
})

const template = {
  metadata: { labels: { app: 'app' } },
  spec: { containers: [{ name: 'app', image: 'app' }] },
}
async function create(name: string, spec: Partial<BackupPodSetSpec>) {
  const body = {
    apiVersion: 'backup.example.com/v1alpha1',
    kind: 'BackupPodSet',
    metadata: { name },
    spec: { template, ...spec },
  }
  await api.create(backupPodSets, body, { namespace })
  return { namespace, name }
}
type Ref = Awaited<ReturnType<typeof create>>

const get = (ref: Ref) => api.get(backupPodSets, ref)
const patch = (ref: Ref, spec: object) =>
  api.patch<BackupPodSet>(backupPodSets, ref, { type: 'merge', body: { spec } })
const patchPod = (pod: Pod, metadata: object) =>
  api.patch(pods, { namespace, name: pod.metadata.name }, { type: 'merge', body: { metadata } })

async function podsOf(ref: Ref, kind?: PodKind): Promise<Pod[]> {
  const { items } = await api.list(pods, { namespace, labelSelector: `${labels.set}=${ref.name}` })
  return items.filter(
    pod =>
      pod.metadata.deletionTimestamp === undefined &&
      (kind === undefined || pod.metadata.labels?.[labels.type] === kind),
  )
}

const settled = (ref: Ref, p: number, h: number, c: number) =>
  eventually(async () => {
    const { status, metadata } = await get(ref)
    const seen = [status?.readyReplicas, status?.readyHotbackups, status?.gatedColdbackups]
    const ready = status?.conditions?.find(({ type }) => type === 'Ready')
    if (
      seen.join() !== [p, h, c].join() ||
      ready?.status !== 'True' ||
      status?.observedGeneration !== metadata.generation
    )
      throw new Error(`${seen}: ${ready?.message}`)
    return podsOf(ref)
  })

const only = (all: readonly Pod[], kind: PodKind): Pod => {
  const found = all.find(pod => pod.metadata.labels?.[labels.type] === kind)
  if (!found) throw new Error(`no ${kind}`)
  return found
}

const noted = (ref: Ref, reason: string) =>
  eventually(async () => {
    const { items } = await api.list(events, {
      namespace,
      fieldSelector: `regarding.name=${ref.name},reason=${reason}`,
    })
    const [event] = items
    if (!event) throw new Error(`no event ${reason}`)
    return event
  })

describe('pods of a set', () => {
  it('F08 F09 F29 F30: carry kind, slot, strategy, owner, scheduler, and the labels of the template', async () => {
    const ref = await create('labels', {
      replicas: 2,
      hotBackups: 1,
      coldBackups: 1,
      schedulerName: 'my-scheduler',
      strategy: { init: 'spread' },
    })
    const all = await settled(ref, 2, 1, 1)
    const set = await get(ref)
    for (const { metadata, spec } of all) {
      expect(metadata.name).toMatch(/^labels-[0-9a-f]{12}$/)
      expect(metadata.labels).toMatchObject({
        app: 'app',
        [labels.set]: 'labels',
        [labels.strategy]: 'spread',
      })
      expect(metadata.ownerReferences).toEqual([
        expect.objectContaining({ uid: set.metadata.uid, controller: true }),
      ])
      expect(spec?.schedulerName).toBe('my-scheduler')
    }
    const primaries = all.filter(pod => pod.metadata.labels?.[labels.type] === 'primary')
    expect(primaries.map(pod => pod.metadata.labels?.[labels.slot]).sort()).toEqual(['0', '1'])
    expect(
      all.some(pod => pod.metadata.labels?.[labels.type] !== 'primary' && pod.metadata.labels?.[labels.slot]),
    ).toBe(false)
    expect(new Set(all.map(pod => pod.metadata.labels?.[labels.type]))).toEqual(
      new Set(['primary', 'hotbackup', 'coldbackup']),
    )
  })

  it('F14: the gate stands before or behind the init containers of the template', async () => {
    const initContainers = [{ name: 'setup', image: 'setup' }]
    const names = async (name: string, gatePosition: 'First' | 'Last') => {
      const spec = { ...template.spec, initContainers }
      const ref = await create(name, { replicas: 0, coldBackups: 1, gatePosition, template: { spec } })
      const [pod] = await settled(ref, 0, 0, 1)
      return pod?.spec?.initContainers?.map(container => container.name)
    }
    expect(await names('gate-first', 'First')).toEqual(['understudy-gate', 'setup'])
    expect(await names('gate-last', 'Last')).toEqual(['setup', 'understudy-gate'])
  })

  it('the gate takes no part in the quality of service of the pod', async () => {
    const ref = await create('qos', { replicas: 0, coldBackups: 1 })
    const [plain] = await settled(ref, 0, 0, 1)
    expect(plain?.status?.qosClass).toBe('BestEffort')
    const resources = { requests: { cpu: '50m', memory: '16Mi' }, limits: { cpu: '50m', memory: '16Mi' } }
    const spec = { containers: [{ name: 'app', image: 'app', resources }] }
    const guaranteed = await create('qos-guaranteed', { replicas: 0, coldBackups: 1, template: { spec } })
    const [pod] = await settled(guaranteed, 0, 0, 1)
    expect(pod?.status?.qosClass).toBe('Guaranteed')
  })
})

describe('status', () => {
  it('F04 F05: shows numbers and names, and a stale one is corrected without a change of the spec', async () => {
    const ref = await create('stale', { replicas: 1, hotBackups: 1, coldBackups: 1 })
    const all = await settled(ref, 1, 1, 1)
    await api.patch(
      backupPodSets,
      ref,
      {
        type: 'merge',
        body: { status: { replicas: 42, primaryPodNames: ['nobody'], summary: { replicas: '42/42' } } },
      },
      { subresource: 'status' },
    )
    await eventually(async () => {
      const { status } = await get(ref)
      expect(status).toMatchObject({
        replicas: 1,
        hotbackups: 1,
        coldbackups: 1,
        primaryPodNames: [only(all, 'primary').metadata.name],
        hotbackupPodNames: [only(all, 'hotbackup').metadata.name],
        coldbackupPodNames: [only(all, 'coldbackup').metadata.name],
        summary: { replicas: '1/1', hotbackups: '1/1', coldbackups: '1/1' },
        selector: `${labels.set}=stale,type=primary`,
      })
    })
  })

  it('comes to rest: a settled set is not written again', async () => {
    const ref = await create('rest', { replicas: 2, hotBackups: 1, coldBackups: 1 })
    await settled(ref, 2, 1, 1)
    const { resourceVersion } = (await get(ref)).metadata
    // The changes of another set and of a pod's annotation cause passes; none of them may write the status.
    for (const pod of await podsOf(ref)) await patchPod(pod, { annotations: { note: 'x' } })
    await create('other', { replicas: 1 }).then(other => settled(other, 1, 0, 0))
    expect((await get(ref)).metadata.resourceVersion).toBe(resourceVersion)
  })
})

describe('failures', () => {
  it('F16 F33: a deleted primary is followed by the hot backup, in place, with its slot and the next epoch', async () => {
    const ref = await create('failover', { replicas: 1, hotBackups: 1, coldBackups: 1 })
    const before = await settled(ref, 1, 1, 1)
    const [primary, hot] = [only(before, 'primary'), only(before, 'hotbackup')]
    await api.delete(pods, { namespace, name: primary.metadata.name })
    const heir = await eventually(async () => {
      const pod = await api.get(pods, { namespace, name: hot.metadata.name })
      expect(pod.metadata.labels?.[labels.type]).toBe('primary')
      return pod
    })
    expect(heir.metadata.uid).toBe(hot.metadata.uid)
    expect(heir.metadata.labels).toMatchObject({ [labels.slot]: '0', [labels.role]: 'primary' })
    expect(heir.metadata.annotations?.[annotations.epoch]).toBe('2')
    await eventually(async () => {
      const { status } = await get(ref)
      expect(status?.lastFailover).toMatchObject({
        slot: 0,
        from: primary.metadata.name,
        to: hot.metadata.name,
        reason: 'PodDeleted',
      })
    })
    await settled(ref, 1, 1, 1)
    expect((await noted(ref, 'FailedOver')).note).toContain(
      `${hot.metadata.name} took over slot 0 from ${primary.metadata.name}`,
    )
  })

  it('R20: gates that nobody can reach, or open, are told before they are needed', async () => {
    kubelet.unreachable.add('behind')
    const ref = await create('behind', { replicas: 1, hotBackups: 0, coldBackups: 1 })
    const cold = only(await settled(ref, 1, 0, 1), 'coldbackup')
    const degraded = async () => (await get(ref)).status?.conditions?.find(({ type }) => type === 'Degraded')
    await eventually(async () =>
      expect(await degraded()).toMatchObject({
        ...{ status: 'True', reason: 'GateUnreachable' },
        message: expect.stringContaining(cold.metadata.name),
      }),
    )
    const well = await create('in-front', { replicas: 1, hotBackups: 0, coldBackups: 1 })
    await settled(well, 1, 0, 1)
    expect((await get(well)).status?.conditions?.find(({ type }) => type === 'Degraded')?.status).toBe(
      'False',
    )
  })

  it('R31: in a namespace that ends no cold backup is woken and nothing is made', async () => {
    const dying = `${namespace}-dying`
    await api.create(namespaces, { metadata: { name: dying } })
    await using _ = startFakeKubelet(api, dying)
    const body = {
      ...{ apiVersion: 'backup.example.com/v1alpha1', kind: 'BackupPodSet', metadata: { name: 'ends' } },
      spec: { template, replicas: 1, hotBackups: 0, coldBackups: 2 },
    }
    await api.create(backupPodSets, body, { namespace: dying })
    const inside = async () => (await api.list(pods, { namespace: dying })).items
    const first = await eventually(async () => {
      const { status } = await api.get(backupPodSets, { namespace: dying, name: 'ends' })
      expect([status?.readyReplicas, status?.gatedColdbackups]).toEqual([1, 2])
      return inside()
    })
    // The namespace controller deletes pods before sets. It does not run here, so this test does it.
    await api.delete(namespaces, { name: dying })
    const primary = only(first, 'primary')
    await api.delete(pods, { namespace: dying, name: primary.metadata.name }, { gracePeriodSeconds: 0 })
    await eventually(async () => expect(await inside()).toHaveLength(2))
    // Meanwhile another set recovers from a failure, so passes do happen.
    const other = await create('lives-on', { replicas: 1, hotBackups: 1, coldBackups: 1 })
    const lost = only(await settled(other, 1, 1, 1), 'primary')
    await api.delete(pods, { namespace, name: lost.metadata.name })
    await eventually(async () =>
      expect((await podsOf(other, 'primary')).map(pod => pod.metadata.uid)).not.toContain(lost.metadata.uid),
    )
    await settled(other, 1, 1, 1)
    expect((await inside()).map(pod => pod.metadata.labels?.[labels.type])).toEqual([
      'coldbackup',
      'coldbackup',
    ])
    expect((await inside()).map(pod => pod.status?.phase)).toEqual(['Pending', 'Pending'])
  })

  it('F31: a silent gate costs its pod, and the loop goes on meanwhile', async () => {
    const ref = await create('silent', { replicas: 1, hotBackups: 0, coldBackups: 1, wakeupTimeout: 2 })
    const cold = only(await settled(ref, 1, 0, 1), 'coldbackup')
    kubelet.silent.add(cold.metadata.name)
    await patch(ref, { replicas: 2 })
    // Another set is served while this one waits for its gate.
    await settled(await create('meanwhile', { replicas: 1, hotBackups: 1, coldBackups: 1 }), 1, 1, 1)
    await settled(ref, 2, 0, 1)
    expect((await podsOf(ref)).map(pod => pod.metadata.uid)).not.toContain(cold.metadata.uid)
    expect((await noted(ref, 'WakeFailed')).note).toContain(cold.metadata.name)
  })

  it('the epoch of a slot rises also when a pause or a silent gate lies between loss and successor', async () => {
    const ref = await create('rising', { replicas: 1, hotBackups: 0, coldBackups: 1, wakeupTimeout: 1 })
    const before = await settled(ref, 1, 0, 1)
    const [primary, cold] = [only(before, 'primary'), only(before, 'coldbackup')]
    kubelet.silent.add(cold.metadata.name)
    await patch(ref, { paused: true })
    await eventually(async () => {
      expect((await get(ref)).status?.conditions?.find(({ type }) => type === 'Paused')?.status).toBe('True')
    })
    await api.delete(pods, { namespace, name: primary.metadata.name }, { gracePeriodSeconds: 0 })
    await eventually(async () => expect((await get(ref)).status?.replicas).toBe(0))
    await patch(ref, { paused: false })
    const heir = only(await settled(ref, 1, 0, 1), 'primary')
    expect(heir.metadata.labels?.[labels.slot]).toBe('0')
    // The silent backup may have been given an epoch of its own.
    expect(Number(heir.metadata.annotations?.[annotations.epoch])).toBeGreaterThan(1)
    expect((await get(ref)).status?.lastFailover).toMatchObject({
      slot: 0,
      from: primary.metadata.name,
      to: heir.metadata.name,
    })
  })

  it('a wrong digest in the pod, as after a lost key, is answered denied: the pod is replaced', async () => {
    const ref = await create('denied', { replicas: 0, hotBackups: 0, coldBackups: 1 })
    const cold = only(await settled(ref, 0, 0, 1), 'coldbackup')
    // A pod with the same uid and name but another digest is impossible, so the test creates one and lets the set adopt
    // it.
    const { metadata, spec } = cold
    const gate = spec?.initContainers?.[0]
    const forged = {
      metadata: { name: 'forged', labels: metadata.labels },
      spec: {
        containers: spec?.containers,
        initContainers: [{ ...gate, command: [...(gate?.command ?? []).slice(0, -1), '0'.repeat(64)] }],
      },
    }
    await patch(ref, { paused: true })
    await api.create(pods, forged, { namespace })
    await api.delete(pods, { namespace, name: metadata.name })
    await patch(ref, { paused: false, hotBackups: 1, coldBackups: 0 })
    await settled(ref, 0, 1, 0)
    expect((await podsOf(ref)).map(pod => pod.metadata.name)).not.toContain('forged')
    expect((await noted(ref, 'WakeFailed')).note).toContain('denied')
  })

  it('a primary that stays unready is replaced by a ready hot backup and then deleted', async () => {
    const ref = await create('unready', { replicas: 1, hotBackups: 1, failover: { unreadySeconds: 1 } })
    const before = await settled(ref, 1, 1, 0)
    const [primary, hot] = [only(before, 'primary'), only(before, 'hotbackup')]
    kubelet.unready.add(primary.metadata.name)
    await patchPod(primary, { annotations: { poke: 'kubelet' } })
    await eventually(async () => {
      expect((await podsOf(ref, 'primary')).map(pod => pod.metadata.uid)).toEqual([hot.metadata.uid])
    })
    await settled(ref, 1, 1, 0)
    expect((await get(ref)).status?.lastFailover).toMatchObject({ reason: 'Unready', to: hot.metadata.name })
  })

  it('a pod that has ended is replaced and cleared away', async () => {
    const ref = await create('ended', { replicas: 1, hotBackups: 1 })
    const [primary, hot] = (all => [only(all, 'primary'), only(all, 'hotbackup')])(
      await settled(ref, 1, 1, 0),
    )
    const name = { namespace, name: primary.metadata.name }
    await api.patch(
      pods,
      name,
      { type: 'merge', body: { status: { phase: 'Failed', reason: 'Evicted' } } },
      { subresource: 'status' },
    )
    await eventually(async () => {
      const all = await podsOf(ref)
      expect(all.map(pod => pod.metadata.uid)).not.toContain(primary.metadata.uid)
      expect(only(all, 'primary').metadata.uid).toBe(hot.metadata.uid)
    })
  })
})

describe('ownership', () => {
  it('a pod whose type label is changed is let go, not deleted, and replaced', async () => {
    const ref = await create('quarantine', { replicas: 1, hotBackups: 1 })
    const primary = only(await settled(ref, 1, 1, 0), 'primary')
    await patchPod(primary, { labels: { type: 'debug' } })
    const freed = await eventually(async () => {
      const pod = await api.get(pods, { namespace, name: primary.metadata.name })
      expect(pod.metadata.ownerReferences ?? []).toEqual([])
      return pod
    })
    expect(freed.metadata.deletionTimestamp).toBeUndefined()
    expect(freed.metadata.labels).not.toHaveProperty(labels.role)
    await eventually(async () => expect(await podsOf(ref, 'primary')).toHaveLength(1))
    // With its label restored it is adopted again, and one surplus pod is deleted.
    await patchPod(freed, { labels: { type: 'primary' } })
    await eventually(async () => {
      expect(await podsOf(ref, 'primary')).toHaveLength(1)
      expect((await get(ref)).status?.replicas).toBe(1)
    })
    await noted(ref, 'PodsAdopted')
  })

  it('a pod whose set label is taken off is let go, too, and replaced', async () => {
    const ref = await create('unlabelled', { replicas: 1, hotBackups: 1 })
    const primary = only(await settled(ref, 1, 1, 0), 'primary')
    const { name } = primary.metadata
    await patchPod(primary, { labels: { [labels.set]: null } })
    const freed = await eventually(async () => {
      const pod = await api.get(pods, { namespace, name })
      expect(pod.metadata.ownerReferences ?? []).toEqual([])
      return pod
    })
    expect(freed.metadata).toMatchObject({ uid: primary.metadata.uid, labels: { type: 'primary' } })
    expect(freed.metadata.deletionTimestamp).toBeUndefined()
    expect((await noted(ref, 'PodsReleased')).note).toContain(name)
    const after = await settled(ref, 1, 1, 0)
    expect(after.map(pod => pod.metadata.name)).not.toContain(name)
    // With its label restored the set owns it again, and one pod is surplus.
    await patchPod(freed, { labels: { [labels.set]: 'unlabelled' } })
    await noted(ref, 'PodsAdopted')
    await eventually(async () => expect(await podsOf(ref, 'primary')).toHaveLength(1))
  })

  it('pods of somebody else with our labels are left alone', async () => {
    const ref = await create('foreign', { replicas: 1 })
    await settled(ref, 1, 0, 0)
    const owner = {
      apiVersion: 'apps/v1',
      kind: 'ReplicaSet',
      name: 'other',
      uid: 'b6f0d3a2-0000-4000-8000-000000000000',
      controller: true,
    }
    const body = {
      metadata: {
        name: 'theirs',
        labels: { [labels.set]: 'foreign', type: 'primary' },
        ownerReferences: [owner],
      },
      spec: template.spec,
    }
    await api.create(pods, body, { namespace })
    await patch(ref, { replicas: 2 })
    await settled(ref, 2, 0, 0).catch(() => {})
    const theirs = await api.get(pods, { namespace, name: 'theirs' })
    expect(theirs.metadata.ownerReferences).toEqual([owner])
    expect((await get(ref)).status?.replicas).toBe(2)
  })

  it('F32: a set that is being deleted gets no pod', async () => {
    const ref = await create('deleted', { replicas: 1 })
    const [pod] = await settled(ref, 1, 0, 0)
    await api.patch(backupPodSets, ref, {
      type: 'merge',
      body: { metadata: { finalizers: ['example.com/hold'] } },
    })
    await api.delete(backupPodSets, ref)
    // The watches of sets and of pods are two: once a later set has its pod, the operator knows of the deletion.
    await settled(await create('after-deleted', { replicas: 1 }), 1, 0, 0)
    await api.delete(pods, { namespace, name: pod?.metadata.name ?? '' })
    await settled(await create('after-its-pod', { replicas: 1 }), 1, 0, 0)
    expect(await podsOf(ref)).toEqual([])
    await api.patch(backupPodSets, ref, { type: 'merge', body: { metadata: { finalizers: null } } })
  })
})

describe('changes', () => {
  it('paused stops everything but the status, and says so', async () => {
    const ref = await create('paused', { replicas: 1, paused: true })
    await eventually(async () => {
      const paused = (await get(ref)).status?.conditions?.find(({ type }) => type === 'Paused')
      expect(paused?.status).toBe('True')
    })
    expect(await podsOf(ref)).toEqual([])
    await patch(ref, { paused: false })
    await settled(ref, 1, 0, 0)
  })

  it('a template change rolls cold, hot and primaries, and keeps the slot', async () => {
    const ref = await create('rolling', { replicas: 1, hotBackups: 1, coldBackups: 1 })
    const before = await settled(ref, 1, 1, 1)
    const spec = { containers: [{ name: 'app', image: 'app:2' }] }
    await patch(ref, { template: { spec } })
    const after = await settled(ref, 1, 1, 1)
    expect(after.map(pod => pod.spec?.containers[0]?.image)).toEqual(['app:2', 'app:2', 'app:2'])
    for (const { metadata } of before) expect(after.map(pod => pod.metadata.uid)).not.toContain(metadata.uid)
    expect(only(after, 'primary').metadata.labels?.[labels.slot]).toBe('0')
  })

  it('OnDelete leaves pods as they are', async () => {
    const ref = await create('on-delete', { replicas: 1, updateStrategy: { type: 'OnDelete' } })
    const before = await settled(ref, 1, 0, 0)
    const { metadata } = await patch(ref, {
      template: { spec: { containers: [{ name: 'app', image: 'app:2' }] } },
    })
    await eventually(async () => {
      expect((await get(ref)).status).toMatchObject({
        observedGeneration: metadata.generation,
        updatedPods: 0,
      })
    })
    expect((await podsOf(ref)).map(pod => pod.metadata.uid)).toEqual(before.map(pod => pod.metadata.uid))
  })

  it('F21 F26: surplus is deleted in one pass, gracefully', async () => {
    const ref = await create('surplus', { replicas: 3, hotBackups: 3, coldBackups: 3 })
    const before = await settled(ref, 3, 3, 3)
    await patch(ref, { replicas: 1, hotBackups: 1, coldBackups: 1 })
    const after = await settled(ref, 1, 1, 1)
    expect(before.map(pod => pod.metadata.uid)).toEqual(
      expect.arrayContaining(after.map(pod => pod.metadata.uid)),
    )
    const passes = operator.log.filter(line => line.includes('"name":"surplus"') && line.includes('"delete"'))
    expect(passes).toHaveLength(1)
    expect(JSON.parse(passes[0] ?? '{}').actions).toEqual({ delete: 6 })
  })
})

it('D6.restart-policy: one bad set, stored under an older CRD, is told what to change and harms no other', async () => {
  const name = 'backuppodsets.backup.example.com'
  const crd = await api.get(customResourceDefinitions, { name })
  type Loose = {
    spec: { versions: { schema: { openAPIV3Schema: { properties: Record<string, Properties> } } }[] }
  }
  type Properties = {
    properties: Record<string, Record<string, unknown>>
    'x-kubernetes-validations'?: unknown
  }
  // The library's types spell x-kubernetes-validations otherwise than the API server.
  const loose: Loose = JSON.parse(JSON.stringify(crd))
  const [version] = loose.spec.versions
  if (!version) throw new Error('no version')
  const spec = version.schema.openAPIV3Schema.properties['spec']
  delete spec?.['x-kubernetes-validations']
  delete spec?.properties['template']?.['x-kubernetes-validations']
  await api.replace(customResourceDefinitions, { name }, loose)
  try {
    const ref = await eventually(() =>
      create('bad', {
        template: { spec: { restartPolicy: 'Never', containers: [{ name: 'app', image: 'app' }] } },
      }),
    )
    await eventually(async () => {
      const ready = (await get(ref)).status?.conditions?.find(({ type }) => type === 'Ready')
      expect(ready).toMatchObject({ status: 'False', reason: 'RestartPolicyNotAlways' })
    })
    await settled(await create('good', { replicas: 1 }), 1, 0, 0)
    await api.delete(backupPodSets, ref)
  } finally {
    const fresh = await api.get(customResourceDefinitions, { name })
    await api.replace(customResourceDefinitions, { name }, { ...crd, metadata: fresh.metadata })
  }
})
