import { describe, expect, it, vi } from 'vitest'
import { backupPodSets } from '../../../src/api/backuppodset.ts'
import { labels } from '../../../src/api/labels.ts'
import type { NumberedSlotLease } from '../../../src/api/numbered-slot.ts'
import { type Answer, answerOf } from '../../../zoo/http-specimen.ts'
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
import { eventually } from '../../support/eventually.ts'
import { kubectl, needsNodes, playground } from '../lib/cluster.ts'
import { discovery, followEndpoints } from '../lib/endpoints.ts'
import { createWorld, restartsOf, type TestSet, type World } from '../lib/world.ts'

const inside = ({ api, namespace }: World): CounterSet => ({ api, namespace, name: 'kept' })

const created = (world: World, replicas: number, hotBackups: number) =>
  world.createSet('kept', {
    replicas,
    hotBackups,
    checkpoint: { interval: '1s' },
    template: counter.template,
  })

/**
 * Three primaries on two nodes, and understudies on the third: an understudy does not cover primaries of its own node.
 */
async function covered(world: World, hotBackups: number): Promise<void> {
  const { nodes } = await playground()
  const last = nodes.at(-1) ?? ''
  await kubectl('cordon', last)
  let set: TestSet
  try {
    set = await created(world, 3, 0)
    await set.settled(3, 0, 0)
  } finally {
    await kubectl('uncordon', last)
  }
  await set.patch({ hotBackups, antiAffinity: 'Required' })
  await saved(inside(world))
}

describe.skipIf(needsNodes())('failovers with memory', () => {
  it.each([0, 1, 2])(
    'D7.own-memory: three primaries and one understudy: slot %i gets its own memory back',
    async victim => {
      await using world = await createWorld()
      await covered(world, 1)
      const expected = await count(inside(world), 2)
      await saved(inside(world))
      const lease = (await slotsOf(inside(world)))[victim] as NumberedSlotLease
      await killApp(await holderOf(inside(world), lease))
      const next = await promoted(inside(world), lease)
      expect(await readSlot(inside(world), next)).toBe(expected[victim])
      expect(restartsOf(await holderOf(inside(world), next))).toBe(0)
    },
  )

  it('N01 D7.own-memory: three primaries and two understudies: two that are lost at once get each its own memory back', async () => {
    await using world = await createWorld()
    await covered(world, 2)
    const expected = await count(inside(world), 2)
    await saved(inside(world))
    const before = await slotsOf(inside(world))
    const victims = before.slice(0, 2)
    const lost = await Promise.all(victims.map(lease => holderOf(inside(world), lease)))
    await Promise.all(lost.map(killApp))
    const next = await Promise.all(victims.map(lease => promoted(inside(world), lease)))
    expect(await Promise.all(next.map(lease => readSlot(inside(world), lease)))).toEqual(expected.slice(0, 2))
    // Three apps with three memories, in three pods; the surviving app has not moved.
    const [, , third] = before
    const now = await slotsOf(inside(world))
    expect(now[2]?.holder).toEqual(third?.holder)
    expect(new Set(now.map(({ holder }) => holder.uid)).size).toBe(3)
    expect(await Promise.all(now.map(lease => readSlot(inside(world), lease)))).toEqual(expected)
  })

  it('N13 D7.grave: at the address of a dead primary its successor answers, and never what the kubelet starts there', async () => {
    await using world = await createWorld()
    await created(world, 1, 1)
    await eventually(async () => expect(await slotsOf(inside(world))).toHaveLength(1))
    await saved(inside(world))
    // The generation before the last one has a number of its own: only an app that has just started answers 0.
    await count(inside(world), 1)
    await saved(inside(world))
    const [expected] = await count(inside(world), 7)
    await saved(inside(world))
    const [lease] = (await slotsOf(inside(world))) as [NumberedSlotLease]
    const dead = await holderOf(inside(world), lease)
    // Clients that know its address, through the whole failover and for as long as its pod exists.
    const heard: { readonly asked: number; readonly at: number; readonly answer: Answer }[] = []
    const over = new AbortController()
    const client = async () => {
      while (!over.signal.aborted) {
        const asked = Date.now()
        const answer = await answerOf(addressOf(dead), 8080, '/peek').catch(() => undefined)
        if (answer !== undefined) heard.push({ asked, at: Date.now(), answer })
        await new Promise(resolve => setTimeout(resolve, 5))
      }
    }
    const clients = Array.from({ length: 4 }, client)
    try {
      await eventually(() => expect(heard.length).toBeGreaterThan(20))
      const killedAt = Date.now()
      await killApp(dead)
      // The kubelet has restarted the container there, so a wrong answer would be possible.
      await vi.waitFor(
        async () => {
          const pod = await holderOf(inside(world), lease)
          expect(pod.metadata.uid).toBe(dead.metadata.uid)
          expect(
            pod.status?.containerStatuses?.some(
              ({ restartCount, state }) => restartCount > 0 && state?.running,
            ),
          ).toBe(true)
        },
        { interval: 20 },
      )
      await promoted(inside(world), lease)
      await eventually(async () => {
        const gone = await holderOf(inside(world), lease).then(
          pod => pod.metadata.uid !== dead.metadata.uid,
          () => true,
        )
        expect(gone).toBe(true)
      })
      expect(heard.filter(({ at }) => at > killedAt).length).toBeGreaterThan(50)
    } finally {
      over.abort()
      await Promise.all(clients)
    }
    // The failure shows which app answered, and when a client asked it.
    expect(heard.filter(({ answer }) => answer['count'] !== expected)).toEqual([])
  })

  it('D7.endpoints: a Service has an endpoint through all failovers to come, so that no proxy refuses connections', async () => {
    await using world = await createWorld()
    await created(world, 1, 1)
    await eventually(async () => expect(await slotsOf(inside(world))).toHaveLength(1))
    await world.createService('primary', { app: 'counter', [labels.type]: 'primary' })
    await saved(inside(world))
    const stop = new AbortController()
    const failOver = async () => {
      // Without an heir no pod could answer the connections of the dead one.
      await eventually(async () => {
        const { status } = await world.api.get(backupPodSets, { namespace: world.namespace, name: 'kept' })
        expect(status?.slots?.map(({ protection }) => protection)).toEqual(['Frozen'])
      })
      const [lease] = (await slotsOf(inside(world))) as [NumberedSlotLease]
      await killApp(await holderOf(inside(world), lease))
      const next = await promoted(inside(world), lease)
      await eventually(async () => expect(await discovery(world, 'primary')).toEqual([next.holder.name]))
      await saved(inside(world))
      return next.holder.name
    }
    // The app of the first primary is its container's own process, so the kubelet sees its end, too.
    const first = await failOver()
    const { versions, followed } = await followEndpoints(world, 'primary', stop.signal)
    try {
      const others = [await failOver(), await failOver(), await failOver(), await failOver()]
      expect(new Set(versions.flat())).toEqual(new Set([first, ...others]))
      // A busy kubelet may publish a successor after the two seconds for which the dead pod stays.
      expect(versions.filter(ready => ready.length === 0).length).toBeLessThan(3)
    } finally {
      stop.abort()
      await followed
    }
  })

  it('D7.own-memory: a deleted primary: its successor goes on with its memory', async () => {
    await using world = await createWorld()
    const set = await created(world, 1, 1)
    await eventually(async () => expect(await slotsOf(inside(world))).toHaveLength(1))
    await saved(inside(world))
    const [expected] = await count(inside(world), 7)
    await saved(inside(world))
    const [lease] = (await slotsOf(inside(world))) as [NumberedSlotLease]
    await set.deletePod(await holderOf(inside(world), lease))
    expect(await readSlot(inside(world), await promoted(inside(world), lease))).toBe(expected)
  })

  it('D7.agents: agents that are killed promote nobody, and memory is kept again afterwards', async () => {
    await using world = await createWorld()
    await created(world, 1, 1)
    await eventually(async () => expect(await slotsOf(inside(world))).toHaveLength(1))
    await saved(inside(world))
    const [lease] = (await slotsOf(inside(world))) as [NumberedSlotLease]
    const primary = await holderOf(inside(world), lease)
    // New pods in between: the kubelet delays the restart of a container that was killed before.
    const upgrade = () => kubectl('delete', 'pods', '--all', '-n', 'understudy-agents')
    for (const end of [() => killAgents(world.api), upgrade, () => killAgents(world.api)]) {
      await end()
      // Meanwhile the primary always answers; at most it waits for the end of a stop.
      for (let i = 0; i < 20; i += 1) await counter.add(addressOf(primary))
      await saved(inside(world))
    }
    const [now] = (await slotsOf(inside(world))) as [NumberedSlotLease]
    expect([now.epoch, now.holder, now.incarnation]).toEqual([lease.epoch, lease.holder, lease.incarnation])
    expect(await counter.read(addressOf(primary))).toBe(60)
    expect(restartsOf(await holderOf(inside(world), now))).toBe(0)
  })
})
