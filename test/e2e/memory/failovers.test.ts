import { kill } from 'node:process'
import { describe, expect, it } from 'vitest'
import { pidsOf } from '../../../playground/pids.ts'
import { nodeReports } from '../../../src/api/node-report.ts'
import { parseSlotLease, type SlotLease } from '../../../src/api/slot-lease.ts'
import { leases, type Pod, pods } from '../../../src/kube/resources.ts'
import { specimen } from '../../../zoo/specimens.ts'
import { kubectl, needsNodes, playground } from '../lib/cluster.ts'
import { createWorld, eventually, restartsOf, type TestSet, type World } from '../lib/world.ts'

const counter = specimen('counter')

const ipOf = (pod: Pod): string => {
  if (pod.status?.podIP === undefined) throw new Error(`${pod.metadata.name} has no address`)
  return pod.status.podIP
}

/** The Leases of a set's slots, by slot. */
async function slotsOf({ api, namespace }: World, set: TestSet): Promise<SlotLease[]> {
  const { items } = await api.list(leases, {
    namespace,
    labelSelector: `backup.example.com/backuppodset=${set.name}`,
  })
  return items.flatMap(lease => parseSlotLease(lease) ?? []).sort((a, b) => a.slot - b.slot)
}

const holderOf = async ({ api, namespace }: World, { holder }: SlotLease): Promise<Pod> =>
  api.get(pods, { namespace, name: holder.name })

/** Waits until memory of now lies ready for every slot of the set. */
async function saved(world: World, set: TestSet): Promise<void> {
  const since = Date.now()
  const slots = await slotsOf(world, set)
  await eventually(async () => {
    const { items } = await world.api.list(nodeReports, {})
    const ready = items
      .flatMap(({ status }) => status?.slots ?? [])
      .filter(({ usable, takenAt }) => usable !== undefined && Date.parse(takenAt ?? '') > since)
    for (const { life, slot } of slots)
      if (!ready.some(it => it.life === life)) throw new Error(`slot ${slot} is not saved yet`)
  }, 90_000)
}

/** Adds until each slot's counter has a number of its own. @returns the numbers, by slot. */
async function count(world: World, set: TestSet, base: number): Promise<number[]> {
  const numbers: number[] = []
  for (const lease of await slotsOf(world, set)) {
    const ip = ipOf(await holderOf(world, lease))
    for (let i = 0; i < base + lease.slot * 3; i += 1) await counter.add(ip)
    numbers.push(await counter.read(ip))
  }
  return numbers
}

async function killApp(pod: Pod): Promise<void> {
  const [pid] = await pidsOf(pod.metadata.uid, 'counter')
  if (pid === undefined) throw new Error(`no counter runs in ${pod.metadata.name}`)
  kill(pid, 'SIGKILL')
}

const created = (world: World, replicas: number, hotBackups: number) =>
  world.createSet('kept', {
    replicas,
    hotBackups,
    checkpoint: { interval: '1s' },
    template: counter.template,
  })

describe.skipIf(needsNodes())('failovers with memory', () => {
  it.each([0, 1, 2])('three primaries and one understudy: slot %i gets its own memory back', async victim => {
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
    await saved(world, set)
    const expected = await count(world, set, 2)
    await saved(world, set)
    const lease = (await slotsOf(world, set))[victim] as SlotLease
    await killApp(await holderOf(world, lease))
    const next = await eventually(async () => {
      const now = (await slotsOf(world, set))[victim] as SlotLease
      if (now.epoch === lease.epoch) throw new Error('not promoted yet')
      return now
    })
    expect(next.life).toBe(lease.life)
    const successor = await holderOf(world, next)
    expect(await eventually(() => counter.read(ipOf(successor)))).toBe(expected[victim])
    expect(restartsOf(successor)).toBe(0)
  })

  it('a deleted primary: its successor goes on with its memory', async () => {
    await using world = await createWorld()
    const set = await created(world, 1, 1)
    await eventually(async () => expect(await slotsOf(world, set)).toHaveLength(1))
    await saved(world, set)
    const [expected] = await count(world, set, 7)
    await saved(world, set)
    const [lease] = (await slotsOf(world, set)) as [SlotLease]
    await set.deletePod(await holderOf(world, lease))
    const [next] = await eventually(async () => {
      const now = (await slotsOf(world, set)) as [SlotLease]
      if (now[0].epoch === lease.epoch) throw new Error('not promoted yet')
      return now
    })
    expect(await eventually(async () => counter.read(ipOf(await holderOf(world, next))))).toBe(expected)
  })

  it('agents that are killed promote nobody, and memory is kept again afterwards', async () => {
    await using world = await createWorld()
    const set = await created(world, 1, 1)
    await eventually(async () => expect(await slotsOf(world, set)).toHaveLength(1))
    await saved(world, set)
    const [lease] = (await slotsOf(world, set)) as [SlotLease]
    const primary = await holderOf(world, lease)
    for (let round = 0; round < 3; round += 1) {
      const agents = JSON.parse(
        await kubectl('--namespace', 'understudy-agents', 'get', 'pods', '--output', 'json'),
      ) as { items: Pod[] }
      for (const agent of agents.items)
        for (const pid of await pidsOf(agent.metadata.uid, 'node')) kill(pid, 'SIGKILL')
      // Throughout: the primary answers, or waits at most for its end of a stop.
      for (let i = 0; i < 20; i += 1) await counter.add(ipOf(primary))
      await saved(world, set)
    }
    const [now] = (await slotsOf(world, set)) as [SlotLease]
    expect([now.epoch, now.holder, now.life]).toEqual([lease.epoch, lease.holder, lease.life])
    expect(await counter.read(ipOf(primary))).toBe(60)
    expect(restartsOf(await holderOf(world, now))).toBe(0)
  })
})
