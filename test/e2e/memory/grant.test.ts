/** A primary that dies while no API server and no operator answer: the agents of two nodes settle that by a grant. */
import { readdir, readFile } from 'node:fs/promises'
import { basename } from 'node:path'
import { kill } from 'node:process'
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import type { Cluster } from '../../../playground/cluster.ts'
import { pidsOf } from '../../../playground/pids.ts'
import { grantsOver } from '../../../src/api/grant.ts'
import type { NumberedSlotLease } from '../../../src/api/numbered-slot.ts'
import { pods } from '../../../src/kube/resources.ts'
import {
  addressOf,
  type CounterSet,
  count,
  counter,
  holderOf,
  killApp,
  promoted,
  readSlot,
  restartsOf,
  saved,
  slotsOf,
} from '../../../zoo/slots.ts'
import { eventually } from '../../support/eventually.ts'
import { needsNodes, playground } from '../lib/cluster.ts'
import { createWorld, replicas, type World } from '../lib/world.ts'

const granted = (set: CounterSet): Promise<NumberedSlotLease> =>
  eventually(async () => {
    const [lease] = await slotsOf(set)
    const { grant } = lease ?? {}
    if (lease === undefined || grant?.heir === undefined || grant.isRevoked)
      throw new Error(`no grant yet: ${JSON.stringify(grant)}`)
    return lease
  })

/** A set with a slot that has a grant, and whose saved memory is this number. */
interface Counted {
  readonly set: CounterSet
  readonly expected: number | undefined
  readonly before: NumberedSlotLease
}

async function counted(
  { api, namespace, createSet }: World,
  name: string,
  { grant, hotBackups = 1 }: { readonly grant: 'Announced' | 'Heir'; readonly hotBackups?: number },
): Promise<Counted> {
  const set: CounterSet = { api, namespace, name }
  await createSet(name, {
    ...{ replicas: 1, hotBackups, template: counter.template },
    checkpoint: { interval: '1s' },
    failover: { grant },
  })
  await granted(set)
  const [expected] = await count(set, 3)
  await saved(set)
  return { set, expected, before: await granted(set) }
}

/** These processes do nothing while `use` runs. */
async function whileStopped(pids: readonly number[], use: () => Promise<void>): Promise<void> {
  expect(pids).not.toEqual([])
  try {
    for (const pid of pids) kill(pid, 'SIGSTOP')
    await use()
  } finally {
    for (const pid of pids) kill(pid, 'SIGCONT')
  }
}

async function operatorsOf(world: World): Promise<number[]> {
  const pids = (await replicas(world)).map(({ metadata }) => pidsOf(metadata.uid, 'node'))
  return (await Promise.all(pids)).flat()
}

/** Returns the processes of the cluster's API server. */
async function apiServersOf({ plan: { controlPlane } }: Cluster): Promise<number[]> {
  const pids: number[] = []
  for (const entry of await readdir('/proc')) {
    if (!/^\d+$/.test(entry)) continue
    try {
      const [program = '', ...options] = (await readFile(`/proc/${entry}/cmdline`, 'utf8')).split('\0')
      const isOurs = options.includes(`--advertise-address=${controlPlane.address}`)
      if (basename(program) === 'kube-apiserver' && isOurs) pids.push(Number(entry))
    } catch {
      // The process has ended since the directory was read.
    }
  }
  return pids
}

describe.skipIf(needsNodes())('a primary that dies while the API server is away', () => {
  it('D7.grant-away: is succeeded with its memory all the same, and the Lease follows', async () => {
    await using world = await createWorld()
    const cluster = await playground()
    const { set, expected, before } = await counted(world, 'kept', { grant: 'Heir' })
    const pod = await holderOf(set, before)
    const address = addressOf(pod)
    let heard: number | undefined
    let outageMs = 0
    await whileStopped(await apiServersOf(cluster), async () => {
      await sleep(3_000)
      await killApp(pod)
      const at = performance.now()
      // By the address of the dead pod, as clients that do not learn of a change.
      heard = await eventually(() => counter.read(address))
      outageMs = performance.now() - at
      await sleep(10_000)
      expect(await counter.read(address)).toBe(expected)
    })
    console.info(`served again after ${Math.round(outageMs)} ms, without the API server`)
    expect(heard).toBe(expected)
    const after = await promoted(set, before)
    expect(after.epoch).toBe(before.epoch + 1)
    expect(after.holder.uid).toBe(before.grant?.heir?.uid)
    expect(await readSlot(set, after)).toBe(expected)
    const next = await holderOf(set, after)
    await eventually(async () => {
      const { metadata } = await holderOf(set, after)
      expect(Object.values(metadata.labels ?? {})).toContain('primary')
    })
    expect(await restartsOf(set, pod)).toEqual({})
    expect(await counter.read(addressOf(next))).toBe(expected)
    await saved(set)
    const [now] = await slotsOf(set)
    expect(now?.epoch).toBe(after.epoch)
  }, 400_000)
})

describe.skipIf(needsNodes())('a primary that dies while no operator runs', () => {
  it('D7.announced-alone: is succeeded by an heir that the API server knows of, and the Lease follows', async () => {
    await using world = await createWorld()
    const { set, expected, before } = await counted(world, 'told', { grant: 'Announced' })
    expect(before.grant?.isAnnounced).toBe(true)
    const pod = await holderOf(set, before)
    await whileStopped(await operatorsOf(world), async () => {
      await killApp(pod)
      expect(await eventually(() => counter.read(addressOf(pod)))).toBe(expected)
      const [same] = await slotsOf(set)
      expect(same?.epoch).toBe(before.epoch)
    })
    const after = await promoted(set, before)
    expect(after.epoch).toBe(before.epoch + 1)
    expect(after.holder.uid).toBe(before.grant?.heir?.uid)
    expect(await readSlot(set, after)).toBe(expected)
    await saved(set)
  }, 400_000)

  it('D7.announced-ended: the operator ends the grant when the nodes of primary and heir are lost, and calls another pod', async () => {
    await using world = await createWorld()
    const cluster = await playground()
    const { set, expected, before } = await counted(world, 'ended', { grant: 'Announced', hotBackups: 2 })
    const heir = before.grant?.heir
    if (heir === undefined) throw new Error('no heir')
    const ref = { namespace: world.namespace, name: before.heir?.name ?? '' }
    const lost = [before.node ?? '', heir.node]
    try {
      // No agent can end the grant then.
      await Promise.all(lost.map(node => cluster.pauseNode(node)))
      const at = performance.now()
      // The heir is called first: its node has written a moment ago.
      const after = await eventually(async () => {
        const [lease] = await slotsOf(set)
        if (lease === undefined || [heir.uid, before.holder.uid].includes(lease.holder.uid))
          throw new Error(`epoch ${lease?.epoch} has ${lease?.holder.name}`)
        return lease
      }, 120_000)
      console.info(`another pod was called after ${Math.round(performance.now() - at)} ms`)
      const { metadata } = await world.api.get(pods, ref)
      expect(grantsOver(metadata.annotations, before.incarnation)).toBe(before.grant?.number)
      expect(await readSlot(set, after)).toBe(expected)
    } finally {
      await Promise.all(lost.map(node => cluster.resumeNode(node)))
    }
  }, 400_000)
})
