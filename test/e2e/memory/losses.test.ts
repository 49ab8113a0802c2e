/** Events that were mistaken for a loss, and losses that were not recognised. */
import { kill } from 'node:process'
import { describe, expect, it } from 'vitest'
import { pidsOf } from '../../../playground/pids.ts'
import type { PodTemplate } from '../../../src/api/backuppodset.ts'
import type { NumberedSlotLease } from '../../../src/api/numbered-slot.ts'
import { events } from '../../../src/kube/resources.ts'
import {
  addressOf,
  type CounterSet,
  count,
  counter,
  holderOf,
  killApp,
  promoted,
  readSlot,
  saved,
  slotsOf,
} from '../../../zoo/slots.ts'
import { eventually } from '../../support/eventually.ts'
import { needsNodes, playground } from '../lib/cluster.ts'
import { createWorld, type World } from '../lib/world.ts'

const inside = ({ api, namespace }: World): CounterSet => ({ api, namespace, name: 'kept' })
const slotIn = async (world: World): Promise<NumberedSlotLease> =>
  eventually(async () => {
    const [lease] = await slotsOf(inside(world))
    if (lease === undefined) throw new Error('no slot yet')
    return lease
  })

const { metadata, spec } = counter.template
const [app] = spec?.containers ?? []
if (app === undefined) throw new Error('the counter has a container')
const withSidecar: PodTemplate = {
  ...(metadata ? { metadata } : {}),
  spec: {
    ...spec,
    containers: [
      app,
      { name: 'side', image: 'understudy.invalid/redis:8.0', imagePullPolicy: 'IfNotPresent' },
    ],
  },
}

describe.skipIf(needsNodes())('what is a loss', () => {
  it('D7.saved: a sidecar that is killed is none: the app runs on, in the same life, and its memory is there', async () => {
    await using world = await createWorld()
    await world.createSet('kept', {
      ...{ replicas: 1, hotBackups: 1, template: withSidecar },
      checkpoint: { interval: '1s', containers: [app.name] },
    })
    const before = await slotIn(world)
    await saved(inside(world))
    const [expected] = await count(inside(world), 5)
    const pod = await holderOf(inside(world), before)
    const [pid] = await pidsOf(pod.metadata.uid, 'redis-server')
    if (pid === undefined) throw new Error('no sidecar runs')
    kill(pid, 'SIGKILL')
    const statusOf = async (name: string) =>
      (await holderOf(inside(world), before)).status?.containerStatuses?.find(one => one.name === name)
    const again = await eventually(async () => {
      const side = await statusOf('side')
      const startedAt = side?.state?.running?.startedAt
      if (!side?.restartCount || startedAt === undefined) throw new Error('not started again yet')
      return Date.parse(String(startedAt))
    })
    // An agent has this much time to report that a restart was a death.
    await eventually(() => expect(Date.now() - again).toBeGreaterThan(20_000))
    await saved(inside(world))
    const now = await slotIn(world)
    expect([now.incarnation, now.epoch, now.holder]).toEqual([
      before.incarnation,
      before.epoch,
      before.holder,
    ])
    expect((await statusOf(app.name))?.restartCount).toBe(0)
    expect(await counter.read(addressOf(pod))).toBe(expected)
    const told = await world.api.list(events, { namespace: world.namespace })
    expect(told.items.filter(({ reason }) => reason === 'StateLost' || reason === 'FailedOver')).toEqual([])
    // The memory is still good for a real loss.
    await killApp(pod)
    expect(await readSlot(inside(world), await promoted(inside(world), before))).toBe(expected)
  })

  it('D7.lost-node: the node of a primary that was promoted before loses its power: the status says so when Kubernetes does, and its slot goes on elsewhere', async () => {
    await using world = await createWorld()
    const cluster = await playground()
    const set = await world.createSet('kept', {
      ...{ replicas: 1, hotBackups: 1, template: counter.template },
      checkpoint: { interval: '1s' },
      // Voters would state the loss within seconds, whatever the status says.
      failover: { fencing: 'None', unreadySeconds: 15 },
    })
    const statusOf = async () => (await set.get()).status
    const first = await slotIn(world)
    await saved(inside(world))
    await count(inside(world), 3)
    await saved(inside(world))
    await killApp(await holderOf(inside(world), first))
    const second = await promoted(inside(world), first)
    await readSlot(inside(world), second)
    const [expected] = await count(inside(world), 4)
    await saved(inside(world))
    await eventually(async () => expect((await statusOf())?.readyReplicas).toBe(1))
    const node = second.node ?? ''
    try {
      await cluster.killNode(node)
      // The last words of its agent and its kubelet stay: that it serves, and that it is ready.
      await eventually(async () => expect((await statusOf())?.readyReplicas).toBe(0))
      const third = await promoted(inside(world), second)
      expect(third.node).not.toBe(node)
      expect(await readSlot(inside(world), third)).toBe(expected)
      await eventually(async () =>
        expect((await statusOf())?.lastFailover).toMatchObject({
          ...{ from: second.holder.name, to: third.holder.name, reason: 'Unready' },
        }),
      )
    } finally {
      await cluster.startNode(node)
    }
  }, 400_000)
})
