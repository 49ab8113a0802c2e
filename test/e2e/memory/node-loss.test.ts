/** Nodes that are cut off while everything on them runs on, and a link between two nodes that fails. */
import { readFile } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import type { Cluster } from '../../../playground/cluster.ts'
import { pidsOf } from '../../../playground/pids.ts'
import { backupPodSets, type FailoverSpec } from '../../../src/api/backuppodset.ts'
import { nodeReports, parseReport } from '../../../src/api/node-report.ts'
import type { NumberedSlotLease } from '../../../src/api/numbered-slot.ts'
import { isReady } from '../../../src/kube/ready.ts'
import { nodes, type Pod } from '../../../src/kube/resources.ts'
import {
  addressOf,
  type CounterSet,
  count,
  counter,
  holderOf,
  promoted,
  readSlot,
  saved,
  slotsOf,
} from '../../../zoo/slots.ts'
import { eventually } from '../../support/eventually.ts'
import { needsNodes, playground } from '../lib/cluster.ts'
import { createWorld, type World } from '../lib/world.ts'

interface Scene {
  readonly set: CounterSet
  readonly before: NumberedSlotLease
  readonly pod: Pod
  /** Node of the primary. */
  readonly node: string
  /** Content of its memory, which is saved. */
  readonly expected: number
}

/** Starts a set with one slot, whose voters its primary has acknowledged. */
async function fenced(world: World, failover: FailoverSpec): Promise<Scene> {
  const set: CounterSet = { api: world.api, namespace: world.namespace, name: 'kept' }
  await world.createSet('kept', {
    ...{ replicas: 1, hotBackups: 1, template: counter.template, failover },
    checkpoint: { interval: '1s' },
  })
  const before = await armed(set)
  const [expected] = await count(set, 3)
  await saved(set)
  if (expected === undefined || before.node === undefined) throw new Error('the slot has a primary')
  return { set, before, pod: await holderOf(set, before), node: before.node, expected }
}

const armed = (set: CounterSet): Promise<NumberedSlotLease> =>
  eventually(async () => {
    const [lease] = await slotsOf(set)
    if (lease?.fence?.isArmed !== true) throw new Error(`not armed yet: ${JSON.stringify(lease?.fence)}`)
    return lease
  })

/** Returns the nodes that have stated that the slot's primary is silent. */
async function statedBy({ api }: CounterSet, { incarnation, fence }: NumberedSlotLease): Promise<string[]> {
  const { items } = await api.list(nodeReports, {})
  return items.flatMap(report => {
    const slots = parseReport(report).status?.slots ?? []
    const said = slots.find(slot => slot.incarnation === incarnation)?.silentTerm
    return said !== undefined && said === fence?.term ? [report.metadata.name] : []
  })
}

/** Returns the states of the app's processes as in /proc, `T`: stopped. */
async function statesOf({ metadata: { uid } }: Pod): Promise<string[]> {
  const states: string[] = []
  for (const pid of await pidsOf(uid, counter.program)) {
    const stat = await readFile(`/proc/${pid}/stat`, 'latin1').catch(() => undefined)
    if (stat !== undefined) states.push(stat.slice(stat.lastIndexOf(')') + 2)[0] ?? '')
  }
  return states
}

const isNodeReady = async ({ api }: CounterSet, name: string): Promise<boolean> =>
  isReady(await api.get(nodes, { name }))

const addressOn = (cluster: Cluster, node: string): string => {
  const found = cluster.plan.nodes.find(({ name }) => name === node)
  if (found === undefined) throw new Error(`no node ${node}`)
  return found.address
}

/** Drops all packets between a node and an address while `use` runs. */
async function withoutLink(
  cluster: Cluster,
  node: string,
  far: string,
  use: () => Promise<void>,
): Promise<void> {
  try {
    await cluster.inNode(node, [
      ...['nft', `table inet cut { chain in { type filter hook input priority 0; ip saddr ${far} drop; };`],
      `chain out { type filter hook output priority 0; ip daddr ${far} drop; }; }`,
    ])
    await use()
  } finally {
    await cluster.inNode(node, ['nft', 'delete', 'table', 'inet', 'cut'])
  }
}

describe.skipIf(needsNodes())('a node that is cut off', () => {
  it('D8.cut: has stopped its primary when the slot goes on elsewhere, long before Kubernetes gives the node up', async () => {
    await using world = await createWorld()
    const cluster = await playground()
    const { set, before, pod, node, expected } = await fenced(world, { nodeTimeout: '3s' })
    expect(await statesOf(pod)).not.toContain('T')
    try {
      await cluster.cutNode(node)
      const after = await promoted(set, before)
      const states = await statesOf(pod)
      expect(await isNodeReady(set, node)).toBe(true)
      expect(new Set(states)).toEqual(new Set(['T']))
      expect(after.node).not.toBe(node)
      expect(await readSlot(set, after)).toBe(expected)
      await count(set, 2)
    } finally {
      await cluster.joinNode(node)
    }
    // The pod of the old epoch never comes back.
    await eventually(async () => expect(await statesOf(pod)).toEqual([]))
    // Its successor was promoted, and has voters as well.
    expect((await armed(set)).epoch).toBe(before.epoch + 1)
    await saved(set)
  }, 400_000)

  it('whose set is paused: its primary resumes when it is back, with its memory and without a successor', async () => {
    await using world = await createWorld()
    const cluster = await playground()
    const { set, before, pod, node, expected } = await fenced(world, { nodeTimeout: '3s' })
    const { namespace, name } = set
    const pause = (paused: boolean) =>
      world.api.patch(backupPodSets, { namespace, name }, { type: 'merge', body: { spec: { paused } } })
    await pause(true)
    try {
      await cluster.cutNode(node)
      // From then on they answer it no more in this term.
      await eventually(async () => expect(await statedBy(set, before)).toHaveLength(2))
      expect(new Set(await statesOf(pod))).toEqual(new Set(['T']))
    } finally {
      await cluster.joinNode(node)
    }
    await eventually(async () => expect(await statesOf(pod)).not.toContain('T'))
    expect(await counter.read(addressOf(pod))).toBe(expected)
    const [now] = await slotsOf(set)
    expect(now).toMatchObject({ epoch: before.epoch, holder: before.holder })
    expect(now?.fence?.term).toBeGreaterThan(before.fence?.term ?? 0)
    await pause(false)
    await count(set, 2)
  }, 400_000)

  it('D8.pause: and resumes after its slot has gone on elsewhere lets no answer of its primary out', async () => {
    await using world = await createWorld()
    const cluster = await playground()
    const { set, before, pod, node, expected } = await fenced(world, { nodeTimeout: '3s' })
    const over = new AbortController()
    const answers: number[] = []
    const ask = async () => {
      while (!over.signal.aborted) {
        await counter.read(addressOf(pod)).then(
          value => answers.push(value),
          () => undefined,
        )
        await sleep(2)
      }
    }
    let asking: Promise<void> | undefined
    try {
      await cluster.pauseNode(node)
      const after = await promoted(set, before)
      expect(await readSlot(set, after)).toBe(expected)
      // So that answers tell which pod has given them: once its app is dead, the old address leads to the successor.
      await count(set, 2)
      asking = ask()
      await sleep(100)
    } finally {
      await cluster.resumeNode(node)
    }
    await eventually(async () => expect(await pidsOf(pod.metadata.uid, counter.program)).toEqual([]))
    over.abort()
    await asking
    expect(answers.filter(value => value <= expected)).toEqual([])
    await saved(set)
  }, 400_000)

  it('D8.all-paused: together with all other nodes, as by the host under them, changes nothing', async () => {
    await using world = await createWorld()
    const cluster = await playground()
    // A busy machine may need a second from the first node that runs again to the last one. A sixth of this time may pass.
    const { set, before, pod, node: own, expected } = await fenced(world, { nodeTimeout: '10s' })
    const pids = await pidsOf(pod.metadata.uid, counter.program)
    const voters = cluster.nodes.filter(node => node !== own)
    for (const ms of [11_000, 15_000]) {
      try {
        for (const node of cluster.nodes) await cluster.pauseNode(node)
        await sleep(ms)
      } finally {
        // Its voters are the first to run again.
        for (const node of [...voters, own]) await cluster.resumeNode(node)
      }
      await eventually(() => readSlot(set, before))
      await sleep(12_000)
    }
    await saved(set)
    const [now] = await slotsOf(set)
    expect([now?.epoch, now?.holder]).toEqual([before.epoch, before.holder])
    expect(await readSlot(set, before)).toBe(expected)
    expect(await pidsOf(pod.metadata.uid, counter.program)).toEqual(pids)
  }, 400_000)

  it('D8.blip: for less than the time-out changes nothing', async () => {
    await using world = await createWorld()
    const cluster = await playground()
    const { set, before, pod, node, expected } = await fenced(world, { nodeTimeout: '20s' })
    const pids = await pidsOf(pod.metadata.uid, counter.program)
    await cluster.cutNode(node)
    await sleep(1_000)
    await cluster.joinNode(node)
    await saved(set)
    const [now] = await slotsOf(set)
    expect([now?.epoch, now?.fence?.term, now?.holder]).toEqual([
      before.epoch,
      before.fence?.term,
      before.holder,
    ])
    expect(await pidsOf(pod.metadata.uid, counter.program)).toEqual(pids)
    expect(await readSlot(set, before)).toBe(expected)
  }, 400_000)

  it('D8.link: one that only its holder does not hear serves on, by the answers of the API server', async () => {
    await using world = await createWorld()
    const cluster = await playground()
    // A pause of a busy machine stops no primary.
    const { set, before, pod, node, expected } = await fenced(world, { nodeTimeout: '10s' })
    const [holder = ''] = before.holders
    await withoutLink(cluster, node, addressOn(cluster, holder), async () => {
      await eventually(async () => expect(await statedBy(set, before)).toContain(holder))
      // The operator begins a new term for the same pod.
      const later = await eventually(async () => {
        const lease = await armed(set)
        expect(lease.fence?.term).toBeGreaterThan(before.fence?.term ?? 0)
        return lease
      })
      expect([later.epoch, later.holder]).toEqual([before.epoch, before.holder])
      expect(await statesOf(pod)).not.toContain('T')
      expect(await readSlot(set, later)).toBe(expected)
    })
    await saved(set)
    const [now] = await slotsOf(set)
    expect([now?.epoch, now?.holder]).toEqual([before.epoch, before.holder])
  }, 400_000)

  it('D8.island: from the API server alone serves by the answers of its holder, until Kubernetes gives it up; then its voters stop it', async () => {
    await using world = await createWorld()
    const cluster = await playground()
    // A pause of a busy machine stops no primary.
    const failover = { nodeTimeout: '10s', unreadySeconds: 5 }
    const { set, before, pod, node, expected } = await fenced(world, failover)
    await withoutLink(cluster, node, cluster.plan.controlPlane.address, async () => {
      // Until then no pod takes over, although the agent cannot be reached.
      const tooSoon: object[] = []
      await eventually(async () => {
        const [now] = await slotsOf(set)
        const isGivenUp = !(await isNodeReady(set, node))
        if (!isGivenUp && now?.epoch !== before.epoch)
          tooSoon.push({ fence: now?.fence, stated: await statedBy(set, before) })
        expect(isGivenUp).toBe(true)
      }, 120_000)
      expect(tooSoon).toEqual([])
      const after = await promoted(set, before)
      expect(new Set(await statesOf(pod))).toEqual(new Set(['T']))
      expect(await readSlot(set, after)).toBe(expected)
    })
    await eventually(async () => expect(await statesOf(pod)).toEqual([]))
    await saved(set)
  }, 400_000)
})
