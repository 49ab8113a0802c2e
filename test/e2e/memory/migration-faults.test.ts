/** Moves that cannot succeed, or are disturbed, on real kubelets: before the switch the source runs on with its memory. */
import { describe, expect, it } from 'vitest'
import type { KubeObject } from '../../../src/kube/object.ts'
import { events, pods, type Resource } from '../../../src/kube/resources.ts'
import { addressOf, counter, holderOf, slotsOf } from '../../../zoo/slots.ts'
import { eventually } from '../../support/eventually.ts'
import { needsNodes } from '../lib/cluster.ts'
import { expectUnmoved, move, reached, read, reasonOf, scene, selectorOf } from '../lib/moving.ts'
import { createWorld } from '../lib/world.ts'

const quotas: Resource<KubeObject> = {
  ...{ group: '', version: 'v1', plural: 'resourcequotas', kind: 'ResourceQuota', namespaced: true },
}

describe.skipIf(needsNodes())('Migrations that are disturbed', () => {
  it('MP-23 D16.stays: without room, nodes or a quota for the new pod, the source runs on, and the Migration says why', async () => {
    await using world = await createWorld()
    const { api, namespace } = world
    const { set, expected, primary, free } = await scene(world)
    const source = { name: primary.metadata.name }
    await move(world, 'nowhere', {
      source,
      addedNodeSelector: { 'example.com/no-such': 'label' },
      unschedulableTimeoutSeconds: 2,
    })
    expect(reasonOf(await reached(world, 'nowhere', 'Failed'))).toBe('Unschedulable')
    await eventually(async () => expect((await api.list(pods, { namespace })).items).toHaveLength(2))
    const body = {
      ...{ apiVersion: 'v1', kind: 'ResourceQuota', metadata: { name: 'full' } },
      spec: { hard: { pods: '2' } },
    }
    await api.create(quotas, body, { namespace })
    // The quota counts the pods that there are only after a moment.
    await eventually(async () =>
      expect(await api.get(quotas, { namespace, name: 'full' })).toMatchObject({
        status: { used: { pods: '2' } },
      }),
    )
    await move(world, 'refused', {
      source,
      addedNodeSelector: selectorOf(free),
      pendingTimeoutSeconds: 4,
    })
    expect(reasonOf(await reached(world, 'refused', 'Failed'))).toBe('TargetComing')
    await api.delete(quotas, { namespace, name: 'full' })
    await expectUnmoved({ set, primary, expected })
  })

  it('MP-23 D16.disturbed: a pod that is deleted while it gets the memory is made again, and two Migrations move a pod once', async () => {
    await using world = await createWorld()
    const { api, namespace } = world
    const { set, lease, expected, primary, free } = await scene(world)
    const wanted = {
      source: { name: primary.metadata.name, uid: primary.metadata.uid },
      addedNodeSelector: selectorOf(free),
    }
    await move(world, 'one', wanted)
    await move(world, 'two', wanted)
    const first = await eventually(async () => {
      const all = await Promise.all(['one', 'two'].map(name => read(world, name)))
      const target = all.find(({ status }) => status?.target !== undefined)?.status?.target
      if (target === undefined) throw new Error('no pod yet')
      return target
    })
    await api.delete(pods, { namespace, name: first.name }, { uid: first.uid, gracePeriodSeconds: 0 })
    const ended = await Promise.all(['one', 'two'].map(name => reached(world, name, 'Succeeded')))
    expect(ended.map(({ status }) => status?.target?.uid)).not.toContain(first.uid)
    await eventually(async () => {
      const { items } = await api.list(events, { namespace })
      const its = items.filter(({ regarding }) => regarding?.kind === 'Migration' && regarding.name === 'one')
      expect(its.map(({ reason }) => reason)).toContain('Moved')
    })
    const [after] = await slotsOf(set)
    if (after === undefined) throw new Error('no slot')
    expect(after.epoch).toBe(lease.epoch + 1)
    expect(after.handedOverBy).toBe(primary.metadata.uid)
    const now = await holderOf(set, after)
    expect(now.spec?.nodeName).toBe(free.metadata.name)
    expect(await counter.read(addressOf(now))).toBe(expected)
  })
})
