import { describe, expect, it } from 'vitest'
import type { SlotLease } from '../../../src/api/slot-lease.ts'
import {
  addressOf,
  type CounterSet,
  count,
  counter,
  holderOf,
  killAgents,
  killApp,
  promoted,
  readSlot,
  saved,
  slotsOf,
} from '../../../zoo/slots.ts'
import { kubectl, needsNodes, playground } from '../lib/cluster.ts'
import { createWorld, eventually, restartsOf, type TestSet, type World } from '../lib/world.ts'

const inside = ({ api, namespace }: World): CounterSet => ({ api, namespace, name: 'kept' })

const created = (world: World, replicas: number, hotBackups: number) =>
  world.createSet('kept', {
    replicas,
    hotBackups,
    checkpoint: { interval: '1s' },
    template: counter.template,
  })

describe.skipIf(needsNodes())('failovers with memory', () => {
  it.each([0, 1, 2])(
    'D7.own-memory: three primaries and one understudy: slot %i gets its own memory back',
    async victim => {
      await using world = await createWorld()
      const { nodes } = await playground()
      const last = nodes.at(-1) ?? ''
      // An understudy does not cover primaries of its own node, and this cluster has three nodes for four pods.
      await kubectl('cordon', last)
      let set: TestSet
      try {
        set = await created(world, 3, 0)
        await set.settled(3, 0, 0)
      } finally {
        await kubectl('uncordon', last)
      }
      await set.patch({ hotBackups: 1, antiAffinity: 'Required' })
      await saved(inside(world))
      const expected = await count(inside(world), 2)
      await saved(inside(world))
      const lease = (await slotsOf(inside(world)))[victim] as SlotLease
      await killApp(await holderOf(inside(world), lease))
      const next = await promoted(inside(world), lease)
      expect(await readSlot(inside(world), next)).toBe(expected[victim])
      expect(restartsOf(await holderOf(inside(world), next))).toBe(0)
    },
  )

  it('D7.own-memory: a deleted primary: its successor goes on with its memory', async () => {
    await using world = await createWorld()
    const set = await created(world, 1, 1)
    await eventually(async () => expect(await slotsOf(inside(world))).toHaveLength(1))
    await saved(inside(world))
    const [expected] = await count(inside(world), 7)
    await saved(inside(world))
    const [lease] = (await slotsOf(inside(world))) as [SlotLease]
    await set.deletePod(await holderOf(inside(world), lease))
    expect(await readSlot(inside(world), await promoted(inside(world), lease))).toBe(expected)
  })

  it('D7.agents: agents that are killed promote nobody, and memory is kept again afterwards', async () => {
    await using world = await createWorld()
    await created(world, 1, 1)
    await eventually(async () => expect(await slotsOf(inside(world))).toHaveLength(1))
    await saved(inside(world))
    const [lease] = (await slotsOf(inside(world))) as [SlotLease]
    const primary = await holderOf(inside(world), lease)
    // New pods in between: the kubelet holds back a container that was killed before.
    const upgrade = () => kubectl('delete', 'pods', '--all', '-n', 'understudy-agents')
    for (const end of [() => killAgents(world.api), upgrade, () => killAgents(world.api)]) {
      await end()
      // Throughout: the primary answers, or waits at most for its end of a stop.
      for (let i = 0; i < 20; i += 1) await counter.add(addressOf(primary))
      await saved(inside(world))
    }
    const [now] = (await slotsOf(inside(world))) as [SlotLease]
    expect([now.epoch, now.holder, now.life]).toEqual([lease.epoch, lease.holder, lease.life])
    expect(await counter.read(addressOf(primary))).toBe(60)
    expect(restartsOf(await holderOf(inside(world), now))).toBe(0)
  })
})
