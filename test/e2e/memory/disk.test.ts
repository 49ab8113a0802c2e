import { mkdtemp, open, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { deriveDiskHalf } from '../../../src/api/disk-half.ts'
import { generationsKey } from '../../../src/api/generations-key.ts'
import { nodeReports, type SlotReport } from '../../../src/api/node-report.ts'
import { type NumberedSlotLease, parseNumberedSlotLease } from '../../../src/api/numbered-slot.ts'
import { deriveKey, type NodeParts } from '../../../src/checkpoint/disk/generation-key.ts'
import { unseal } from '../../../src/checkpoint/disk/seal.ts'
import { leases, pods, secrets } from '../../../src/kube/resources.ts'
import { wakeKeySecret } from '../../../src/slot/gate/wake-key.ts'
import { specimen } from '../../../zoo/specimens.ts'
import { eventually } from '../../support/eventually.ts'
import { kubectl, needsNodes, playground } from '../lib/cluster.ts'
import { tellOnFailure } from '../lib/story.ts'
import { createWorld, type TestSet, type World } from '../lib/world.ts'

const counter = specimen('counter')
const directory = '/var/lib/understudy/generations'

async function slotOf({ api, namespace }: World, set: TestSet): Promise<NumberedSlotLease> {
  const query = { namespace, labelSelector: `backup.example.com/backuppodset=${set.name}` }
  const [lease] = (await api.list(leases, query)).items.flatMap(it => parseNumberedSlotLease(it) ?? [])
  if (lease === undefined) throw new Error('no slot yet')
  return lease
}

const addressOf = async ({ api, namespace }: World, { holder }: NumberedSlotLease): Promise<string> => {
  const { status } = await api.get(pods, { namespace, name: holder.name })
  if (status?.podIP === undefined) throw new Error(`${holder.name} has no address`)
  return status.podIP
}

/** Waits until a node's report about this life of a slot passes the test, and returns it. */
const reported = (
  { api }: World,
  node: string,
  { incarnation }: NumberedSlotLease,
  test: (slot: SlotReport, updatedAt: number) => boolean,
  timeoutMs: number,
): Promise<SlotReport> =>
  eventually(async () => {
    const { status } = await api.get(nodeReports, { name: node })
    const slot = status?.slots.find(it => it.incarnation === incarnation)
    if (slot === undefined || !test(slot, Date.parse(status?.updatedAt ?? '')))
      throw new Error(`not yet: ${JSON.stringify(slot)}`)
    return slot
  }, timeoutMs)

interface Kept {
  readonly set: TestSet
  readonly slot: NumberedSlotLease
  /** Node of the understudy. */
  readonly node: string
}

/** Creates a set of one primary and one understudy, and waits for files on the disk of the understudy's node. */
async function createKept(world: World): Promise<Kept> {
  const set = await world.createSet('kept', {
    replicas: 1,
    hotBackups: 1,
    checkpoint: { interval: '1s', copies: 1 },
    template: counter.template,
  })
  const slot = await eventually(async () => {
    const lease = await slotOf(world, set)
    if (lease.heir === undefined) throw new Error('no heir yet')
    return lease
  }, 120_000)
  const [node = ''] = slot.holders
  await reported(world, node, slot, ({ onDisk }) => onDisk !== undefined, 120_000)
  return { set, slot, node }
}

/** The same, and waits until a count is on the disk. */
async function createCounted(world: World): Promise<Kept & { readonly count: number }> {
  const kept = await createKept(world)
  const ip = await eventually(() => addressOf(world, kept.slot))
  for (let i = 0; i < 7; i += 1) await eventually(() => counter.add(ip))
  const count = await counter.read(ip)
  const since = Date.now()
  await reported(
    world,
    kept.node,
    kept.slot,
    ({ onDisk }) => Date.parse(onDisk?.takenAt ?? '') > since,
    240_000,
  )
  return { ...kept, count }
}

describe.skipIf(needsNodes())('generations on disks', () => {
  // A slot's next state reaches the disk after a minute, and the files of a deleted set are removed after a minute: so
  // both tests wait together.
  let world: World
  let counted: ReturnType<typeof createCounted>
  beforeAll(async () => {
    world = await createWorld()
    counted = createCounted(world)
    counted.catch(() => undefined) // the test that awaits it gets the error
  })
  afterAll(() => world?.[Symbol.asyncDispose]())

  it('D9.set-deleted: with the set goes the key, and then the files', async () => {
    await using world = await createWorld()
    const cluster = await playground()
    const { set, slot, node } = await createKept(world)
    const { namespace } = generationsKey
    const secretOf = async (namespace: string, name: string, field: string) =>
      Buffer.from((await world.api.get(secrets, { namespace, name })).data?.[field] ?? '', 'base64')
    const agents = await secretOf(namespace, generationsKey.secret, generationsKey.field)
    const operatorKey = await secretOf('understudy-system', wakeKeySecret, 'key')
    const parts = { agents, node: deriveDiskHalf(operatorKey, node) }
    const { tag } = deriveKey(parts, slot.seal ?? '', slot)
    const files = async () =>
      (await cluster.inNode(node, ['ls', directory])).split('\n').filter(name => name.startsWith(tag))
    const [file] = await files()
    // The file as a thief of the disk has it.
    const taken = Buffer.from(await cluster.inNode(node, ['base64', '-w0', `${directory}/${file}`]), 'base64')
    const scratch = await mkdtemp(join(tmpdir(), 'taken-'))
    const opens = async (seal: string, known: NodeParts = parts) => {
      await writeFile(join(scratch, 'file'), taken)
      const handle = await open(join(scratch, 'file'))
      try {
        for await (const _ of unseal(handle, deriveKey(known, seal, slot).secret)) return true
        return true
      } catch {
        return false
      } finally {
        await handle.close()
      }
    }
    try {
      expect(await opens(slot.seal ?? '')).toBe(true)
      // D10.disk-half: what every agent may read, also with the half of another node.
      expect(await opens(slot.seal ?? '', { agents, node: undefined })).toBe(false)
      const other = deriveDiskHalf(operatorKey, slot.node ?? '')
      expect(await opens(slot.seal ?? '', { agents, node: other })).toBe(false)
      await kubectl('-n', world.namespace, 'delete', 'bps', set.name)
      await eventually(async () => {
        await expect(slotOf(world, set)).rejects.toThrow('no slot')
        expect(await files()).toEqual([])
      }, 240_000)
      const left = (await world.api.list(leases, {})).items.flatMap(
        it => parseNumberedSlotLease(it)?.seal ?? [],
      )
      for (const seal of [...left, '00'.repeat(32)]) expect(await opens(seal)).toBe(false)
    } finally {
      await rm(scratch, { recursive: true })
    }
  }, 900_000)

  it('D9.power: primary and holder lose their power, the holder comes back, and with it the memory', async () => {
    const cluster = await playground()
    tellOnFailure(world)
    const { set, slot, node, count } = await counted
    const dead = slot.node ?? ''
    try {
      await Promise.all([cluster.killNode(dead), cluster.killNode(node)])
      await cluster.startNode(node)
      const since = Date.now()
      await reported(
        world,
        node,
        slot,
        // Until the agent knows its copies, its report keeps the content from before the power cut.
        ({ usable, generation, onDisk }, updatedAt) =>
          updatedAt > since && usable !== undefined && generation === onDisk?.generation,
        240_000,
      )
      await kubectl('-n', world.namespace, 'delete', 'pod', slot.holder.name, '--force', '--grace-period=0')
      const next = await eventually(async () => {
        const now = await slotOf(world, set)
        if (now.epoch === slot.epoch) throw new Error('not promoted yet')
        return now
      }, 120_000)
      expect(next.incarnation).toBe(slot.incarnation)
      expect(await eventually(async () => counter.read(await addressOf(world, next)))).toBe(count)
    } finally {
      for (const name of [dead, node]) await cluster.startNode(name)
    }
  }, 900_000)
})
