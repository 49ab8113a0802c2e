import { describe, expect, it } from 'vitest'
import { labels } from '../../src/api/labels.ts'
import { isReady } from '../../src/kube/ready.ts'
import { nodes, pods as podResource } from '../../src/kube/resources.ts'
import { eventually } from '../support/eventually.ts'
import { kubectl } from './lib/cluster.ts'
import { counterWith, createWorld, restartsOf, testSet, typeOf } from './lib/world.ts'

describe("the paper's story on real kubelets", () => {
  it('F01 F02 F04 F06 F08 F09 F15 F21 F24 F25 F26: 2/2/2, a primary lost, up to 3/3/3, down to 1/1/1', async () => {
    await using world = await createWorld()
    const { namespace } = world
    expect(
      await kubectl(
        'apply',
        '-n',
        namespace,
        '-f',
        new URL('../../samples/paper.yaml', import.meta.url).pathname,
      ),
    ).toBe('backuppodset.backup.example.com/bps-sample created\n')
    const set = testSet(world.api, namespace, 'bps-sample')
    const created = await set.settled(2, 2, 2)

    // As in the paper's listing of each kind. There cold backups are 0/1, because their gate does not stay (ADR 94).
    for (const pod of [...created.primary, ...created.hotbackup]) {
      expect(pod.metadata.name).toMatch(/^bps-sample-[0-9a-f]{12}$/)
      expect([pod.status?.phase, isReady(pod), restartsOf(pod)]).toEqual(['Running', true, 0])
      expect(pod.spec?.containers[0]?.image).toBe('nginx:1.14.2')
    }
    const listing = await kubectl('get', 'pods', '-n', namespace, '-L', 'type', '--no-headers')
    for (const pod of created.coldbackup)
      expect(listing).toMatch(
        new RegExp(`${pod.metadata.name}\\s+0/2\\s+Init:0/1\\s+0\\s+\\S+\\s+coldbackup`),
      )
    const [header, row] = (await kubectl('get', 'bps', '-n', namespace)).trimEnd().split('\n')
    expect(header?.split(/\s+/)).toEqual([
      'NAME',
      'NAMESPACE',
      'REPLICAS',
      'HOTBACKUPS',
      'COLDBACKUPS',
      'AGE',
      ...['READY', 'BACKUPS', 'PROTECTION'],
    ])
    expect(row?.split(/\s+/).slice(0, 5)).toEqual(['bps-sample', namespace, '2/2', '2/2', '2/2'])
    const { status } = await set.get()
    expect(status?.primaryPodNames).toEqual(created.primary.map(pod => pod.metadata.name))
    expect(status?.hotbackupPodNames).toEqual(created.hotbackup.map(pod => pod.metadata.name))
    expect(status?.coldbackupPodNames).toEqual(created.coldbackup.map(pod => pod.metadata.name))

    // A primary is lost: a hot backup becomes primary, a cold one becomes hot, and a cold one is created.
    const [lost] = created.primary
    if (!lost) throw new Error('no primary')
    await set.deletePod(lost)
    const repaired = await eventually(async () => {
      const now = await set.settled(2, 2, 2)
      if (now.primary.some(pod => pod.metadata.uid === lost.metadata.uid)) throw new Error('not deleted yet')
      return now
    })
    const uids = (all: readonly { metadata: { uid: string } }[]) => all.map(pod => pod.metadata.uid)
    const promoted = repaired.primary.filter(pod => uids(created.hotbackup).includes(pod.metadata.uid))
    expect(promoted).toHaveLength(1)
    expect(
      repaired.hotbackup.filter(pod => uids(created.coldbackup).includes(pod.metadata.uid)),
    ).toHaveLength(1)
    expect(
      repaired.coldbackup.filter(pod => !uids(created.coldbackup).includes(pod.metadata.uid)),
    ).toHaveLength(1)

    // More traffic: one promotion, two conversions, three creations; in place, without a restart.
    await set.scale({ replicas: 3, hotBackups: 3, coldBackups: 3 })
    const up = await set.settled(3, 3, 3)
    const before = [...repaired.primary, ...repaired.hotbackup, ...repaired.coldbackup]
    const after = [...up.primary, ...up.hotbackup, ...up.coldbackup]
    expect(uids(after)).toEqual(expect.arrayContaining(uids(before)))
    expect(up.primary.filter(pod => uids(repaired.hotbackup).includes(pod.metadata.uid))).toHaveLength(1)
    expect(up.hotbackup.filter(pod => uids(repaired.coldbackup).includes(pod.metadata.uid))).toHaveLength(2)
    expect(up.coldbackup.filter(pod => uids(before).includes(pod.metadata.uid))).toHaveLength(0)
    for (const pod of after) {
      const old = before.find(one => one.metadata.uid === pod.metadata.uid)
      expect(restartsOf(pod)).toBe(0)
      if (old) expect(pod.status?.podIP).toBe(old.status?.podIP)
    }

    // Less traffic: six deletions; the remaining pods keep their kind.
    await set.scale({ replicas: 1, hotBackups: 1, coldBackups: 1 })
    const down = await set.settled(1, 1, 1)
    expect(uids(up.primary)).toEqual(expect.arrayContaining(uids(down.primary)))
    expect(uids(up.hotbackup)).toEqual(expect.arrayContaining(uids(down.hotbackup)))
    expect(uids(up.coldbackup)).toEqual(expect.arrayContaining(uids(down.coldbackup)))
    // The surplus pods end for good, and release the resources that they reserved.
    await eventually(async () => {
      const { items } = await world.api.list(podResource, { namespace })
      expect(items).toHaveLength(3)
    })
  })

  it('F32: a deleted set takes all its pods with it', async () => {
    await using world = await createWorld()
    const set = await world.createSet('gone', { replicas: 1, hotBackups: 1, coldBackups: 1 })
    await set.settled(1, 1, 1)
    await kubectl('delete', 'bps', 'gone', '-n', world.namespace)
    await eventually(async () => {
      const { items } = await world.api.list(podResource, { namespace: world.namespace })
      expect(items).toEqual([])
    })
  })
})

describe('placement', () => {
  it('D6.cold F12: a cold backup reserves what it asks for, and runs nothing of the application', async () => {
    await using world = await createWorld()
    const [node] = (await world.api.list(nodes, {})).items
    const cpu = Number(node?.status?.allocatable?.['cpu'] ?? 0)
    const nodeCount = (await world.api.list(nodes, {})).items.length
    // More than half of a node each: one fits on every node, and no two fit on the same.
    const resources = { requests: { cpu: `${Math.ceil(cpu * 510)}m` } }
    const template = counterWith({ resources })
    const set = await world.createSet('reserve', { replicas: 0, coldBackups: nodeCount, template })
    const { coldbackup } = await set.settled(0, 0, nodeCount)
    expect(new Set(coldbackup.map(pod => pod.spec?.nodeName)).size).toBe(nodeCount)
    for (const pod of coldbackup)
      expect(pod.status?.containerStatuses?.every(status => status.state?.waiting)).toBe(true)
    await world.api.create(
      podResource,
      {
        metadata: { name: 'late' },
        spec: { containers: [{ name: 'late', image: 'understudy.invalid/counter:0.1.0', resources }] },
      },
      { namespace: world.namespace },
    )
    await eventually(async () => {
      const late = await world.api.get(podResource, { namespace: world.namespace, name: 'late' })
      const scheduled = late.status?.conditions?.find(({ type }) => type === 'PodScheduled')
      expect(scheduled).toMatchObject({ status: 'False', reason: 'Unschedulable' })
      expect(scheduled?.message).toContain('Insufficient cpu')
    })
  })

  it('backups stay off the nodes of primaries when that is required', async () => {
    await using world = await createWorld()
    const set = await world.createSet('apart', {
      replicas: 1,
      hotBackups: 1,
      coldBackups: 1,
      antiAffinity: 'Required',
    })
    const { primary, hotbackup, coldbackup } = await set.settled(1, 1, 1)
    for (const backup of [...hotbackup, ...coldbackup])
      expect(backup.spec?.nodeName).not.toBe(primary[0]?.spec?.nodeName)
  })

  it('F29 F30: another scheduler places the pods and sees the strategy on them', async () => {
    await using world = await createWorld()
    const set = await world.createSet('scheduled', {
      replicas: 1,
      hotBackups: 0,
      schedulerName: 'model',
      strategy: { init: 'spread' },
    })
    const [pod] = await eventually(async () => {
      const all = await set.pods()
      expect(all).toHaveLength(1)
      return all
    })
    expect(pod?.spec?.schedulerName).toBe('model')
    expect(pod?.spec?.nodeName).toBeUndefined()
    expect(pod?.metadata.labels?.[labels.strategy]).toBe('spread')
    // This test acts as that scheduler.
    const [node] = (await world.api.list(nodes, {})).items
    const name = pod?.metadata.name ?? ''
    const target = { apiVersion: 'v1', kind: 'Node', name: node?.metadata.name }
    const path = `/api/v1/namespaces/${world.namespace}/pods/${name}/binding`
    await world.api.request('POST', path, {
      body: { apiVersion: 'v1', kind: 'Binding', metadata: { name }, target },
    })
    const { primary } = await set.settled(1, 0, 0)
    expect(primary.map(one => [one.metadata.name, typeOf(one)])).toEqual([[name, 'primary']])
  })
})
