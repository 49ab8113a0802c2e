/** Drains on real kubelets: `kubectl drain` with nothing else, while clients count. */
import { describe, expect, it } from 'vitest'
import { backupPodSets } from '../../../src/api/backuppodset.ts'
import { annotations } from '../../../src/api/labels.ts'
import { type Migration, migrations } from '../../../src/api/migration.ts'
import { events, nodes, podDisruptionBudgets, pods } from '../../../src/kube/resources.ts'
import {
  addressOf,
  type CounterSet,
  counter,
  holderOf,
  restartsOf,
  saved,
  slotsOf,
} from '../../../zoo/slots.ts'
import { eventually } from '../../support/eventually.ts'
import { kubectl, needsNodes } from '../lib/cluster.ts'
import { move, reached, selectorOf } from '../lib/moving.ts'
import { alone, createWorld, type World } from '../lib/world.ts'

/** Returns the Lease of a slot. */
async function leaseOf(set: CounterSet, slot: number) {
  const lease = (await slotsOf(set)).find(each => each.slot === slot)
  if (lease === undefined) throw new Error(`no slot ${slot}`)
  return lease
}

/** A client that counts on, whichever pod has the slot. */
async function counting(set: CounterSet, slot = 0) {
  let [answered, failed, gapMs] = [0, 0, 0]
  let isOver = false
  const addressNow = async (): Promise<string> => addressOf(await holderOf(set, await leaseOf(set, slot)))
  const run = async (): Promise<void> => {
    let ip = await addressNow()
    let last = Date.now()
    while (!isOver) {
      try {
        await counter.add(ip)
        answered += 1
        gapMs = Math.max(gapMs, Date.now() - last)
        last = Date.now()
      } catch {
        failed += 1
        ip = await addressNow().catch(() => ip)
      }
      await new Promise(resolve => setTimeout(resolve, 20))
    }
  }
  const running = run()
  return {
    async end() {
      isOver = true
      await running
      const value = await counter.read(await addressNow())
      return { value, answered, failed, gapMs }
    },
  }
}

const drained = async ({ api, namespace }: World, node: string): Promise<readonly Migration[]> =>
  (await api.list(migrations, { namespace })).items.filter(
    ({ metadata }) => metadata.annotations?.[annotations.drainedNode] === node,
  )

const drain = (node: string) =>
  kubectl('drain', node, '--ignore-daemonsets', '--delete-emptydir-data', '--timeout=300s')

async function nodeOf(set: CounterSet): Promise<string> {
  const [lease] = await slotsOf(set)
  return lease?.node ?? ''
}

/** A set of counters with one hot backup, whose memory is saved and covered. */
async function counterSet(world: World, name: string, replicas = 1): Promise<CounterSet> {
  const set: CounterSet = { api: world.api, namespace: world.namespace, name }
  await world.createSet(name, {
    ...{ replicas, hotBackups: 1, checkpoint: { interval: '1s' } },
    // A busy machine must not look like a lost node: then the successor continues from the last saved state.
    failover: { nodeTimeout: '60s', fencing: 'None' },
  })
  await eventually(async () => {
    const slots = await slotsOf(set)
    expect(slots).toHaveLength(replicas)
    for (const { heir, slot } of slots) if (heir === undefined) throw new Error(`no heir of slot ${slot} yet`)
  })
  await saved(set)
  return set
}

/** Moves the primary of a slot to a node, unless it is there. */
async function bring(world: World, set: CounterSet, node: string, slot = 0): Promise<void> {
  const lease = await leaseOf(set, slot)
  if (lease.node === node) return
  const name = `bring-${set.name}`
  const addedNodeSelector = selectorOf(await world.api.get(nodes, { name: node }))
  await move(world, name, { source: { name: lease.holder.name }, addedNodeSelector })
  await reached(world, name, 'Succeeded')
}

/** Returns the events, Migrations and slots of the namespace, for errors. */
async function historyOf({ api, namespace }: World): Promise<string> {
  const told = (await api.list(events, { namespace })).items.map(each =>
    [each.eventTime, each.regarding?.name, each.reason, each.note].join(' '),
  )
  const moves = (await api.list(migrations, { namespace })).items.map(
    ({ metadata, status }) => `${metadata.name} ${JSON.stringify(status)}`,
  )
  const { items } = await api.list(backupPodSets, { namespace })
  const slots = items.map(({ metadata, status }) => `${metadata.name} ${JSON.stringify(status?.slots)}`)
  return [...told.sort(), ...moves, ...slots].join('\n')
}

/** Plays in a world of its own; an error comes with its history. */
async function withHistory(play: (world: World) => Promise<void>): Promise<void> {
  await using world = await createWorld()
  try {
    await play(world)
  } catch (error) {
    throw new Error(await historyOf(world), { cause: error })
  }
}

const evict = ({ api, namespace }: World, name: string) =>
  api.request('POST', `/api/v1/namespaces/${namespace}/pods/${name}/eviction`, {
    body: { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { namespace, name } },
  })

async function drainThereAndBack(world: World): Promise<void> {
  await alone(world)
  const workers = (await world.api.list(nodes, {})).items.filter(
    ({ spec }) => !spec?.unschedulable && !spec?.taints?.length,
  )
  const sets = [await counterSet(world, 'one'), await counterSet(world, 'two')] as const
  const node = await nodeOf(sets[0])
  await bring(world, sets[1], node)
  await Promise.all(sets.map(set => saved(set)))
  const lives = await Promise.all(sets.map(async set => (await slotsOf(set))[0]?.incarnation))
  for (const set of sets) expect(await nodeOf(set)).toBe(node)
  const clients = await Promise.all(sets.map(set => counting(set)))
  try {
    const begun = Date.now()
    await drain(node)
    console.log(`drained ${node} in ${Date.now() - begun} ms`)
    for (const set of sets) expect(await nodeOf(set)).not.toBe(node)
    const moves = await drained(world, node)
    expect(moves.map(({ status }) => status?.phase).sort()).toEqual(['Succeeded', 'Succeeded'])
    await kubectl('uncordon', node)

    // And back: another node, under the same clients.
    await Promise.all(sets.map(set => saved(set)))
    const second = await nodeOf(sets[0])
    const again = Date.now()
    await drain(second)
    console.log(`drained ${second} in ${Date.now() - again} ms`)
    for (const set of sets) expect(await nodeOf(set)).not.toBe(second)
    await kubectl('uncordon', second)
  } finally {
    for (const { metadata } of workers) await kubectl('uncordon', metadata.name)
  }
  for (const [index, client] of clients.entries()) {
    const { value, answered, failed, gapMs } = await client.end()
    console.log(
      `${sets[index]?.name}: ${answered} answered, ${failed} failed, counts ${value}, gap ${gapMs} ms`,
    )
    expect(value).toBeGreaterThanOrEqual(answered)
    expect(value).toBeLessThanOrEqual(answered + failed)
  }
  for (const [index, set] of sets.entries()) {
    expect((await slotsOf(set))[0]?.incarnation).toBe(lives[index])
    expect(await restartsOf(set)).toEqual({})
  }
  const told = (await world.api.list(events, { namespace: world.namespace })).items
  expect(told.map(({ reason }) => reason)).toContain('Draining')
}

async function drainSetOfTwo(world: World): Promise<void> {
  await alone(world)
  const set = await counterSet(world, 'two', 2)
  const { node = '', incarnation } = await leaseOf(set, 0)
  await bring(world, set, node, 1)
  await eventually(async () => {
    for (const { heir } of await slotsOf(set)) expect(heir).toBeDefined()
  })
  await saved(set)
  const clients = await Promise.all([0, 1].map(slot => counting(set, slot)))
  try {
    await drain(node)
  } finally {
    await kubectl('uncordon', node)
  }
  const moves = await drained(world, node)
  expect(moves.map(({ status }) => status?.phase)).toEqual(['Succeeded', 'Succeeded'])
  const times = (phase: string) =>
    moves.map(({ status }) => Date.parse(status?.phaseTimes?.find(each => each.phase === phase)?.at ?? ''))
  expect(Math.max(...times('Reserving'))).toBeLessThan(Math.min(...times('Succeeded')))
  for (const { node: now } of await slotsOf(set)) expect(now).not.toBe(node)
  for (const client of clients) {
    const { value, answered, failed } = await client.end()
    expect(value).toBeGreaterThanOrEqual(answered)
    expect(value).toBeLessThanOrEqual(answered + failed)
  }
  expect((await leaseOf(set, 0)).incarnation).toBe(incarnation)
  expect(await restartsOf(set)).toEqual({})
}

describe.skipIf(needsNodes())('drains', () => {
  it('D17.drains: kubectl drain of a node with primaries of two sets ends, every counted answer is in the state, and back again', async () => {
    await withHistory(drainThereAndBack)
  })

  it('D17.several: two primaries of one set leave a drained node at the same time, although they have the same heir', async () => {
    await withHistory(drainSetOfTwo)
  })

  it('D17.refuses: the eviction of a primary is refused with 429, and of its hot backup is not', async () => {
    await using world = await createWorld()
    const { api, namespace } = world
    const set = await counterSet(world, 'kept')
    const [lease] = await slotsOf(set)
    await eventually(async () => {
      const { items } = await api.list(podDisruptionBudgets, { namespace })
      expect(items.map(({ metadata, status }) => [metadata.name, status?.disruptionsAllowed])).toEqual([
        ['kept-primaries', 0],
      ])
    })
    await expect(evict(world, lease?.holder.name ?? '')).rejects.toMatchObject({
      ...{ code: 'Throttled', status: 429 },
      message: expect.stringContaining('disruption budget'),
    })
    const hot = lease?.heir?.name ?? ''
    expect((await evict(world, hot)).status).toBe(201)
    await eventually(async () => {
      const again = (await slotsOf(set))[0]
      expect(again?.heir?.name).not.toBe(hot)
      expect(again?.heir).toBeDefined()
      expect(again?.holder.uid).toBe(lease?.holder.uid)
    })
    const pod = await api.get(pods, { namespace, name: lease?.holder.name ?? '' })
    expect(pod.metadata.deletionTimestamp).toBeUndefined()
  })
})
