import { randomBytes } from 'node:crypto'
import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { afterEach, beforeEach, expect, it } from 'vitest'
import type { SlotKey } from '../../api/slot-key.ts'
import { createFakeClock } from '../../kube/clock.ts'
import { seededRandom, systemRandom } from '../../kube/random.ts'
import { createGenerationStore, type GenerationStore } from '../store.ts'
import { manifestOf, putFiles, slotKey } from '../testing/generation.ts'
import { createGenerationDisk, type GenerationDisk } from './disk.ts'
import { deriveKey } from './generation-key.ts'

let root: string
const clock = createFakeClock()
const { signal } = new AbortController()
const budget = 1_000_000

beforeEach(async () => {
  root = await mkdtemp('/dev/shm/understudy-share-')
})
afterEach(() => rm(root, { recursive: true }))

/** A tmpfs with room for everything: only the disk refuses. */
const newStore = async (name = 'memory') => {
  const dir = join(root, name)
  const store = createGenerationStore({ dir, budget: 1 << 24, clock, random: seededRandom(1) })
  await store.load()
  return store
}
const newDisk = async ({ dir = 'disk', share = 0.75 } = {}) => {
  const disk = createGenerationDisk({
    ...{ dir: join(root, dir), budget, share, clock, random: systemRandom },
    boot: { id: 'one', uptime: () => clock.monotonic() },
    space: async () => ({ free: 9e12, total: 10e12 }),
  })
  await disk.load()
  return disk
}
const files = (dir = 'disk') => readdir(join(root, dir))

const slotOf = (namespace: string, slot: number): SlotKey => ({
  ...slotKey,
  namespace,
  name: `carts-${slot}`,
})
const keyOf = (slot: SlotKey) =>
  deriveKey({ agents: Buffer.alloc(32, 1), node: Buffer.alloc(32, 9) }, '02'.repeat(32), slot)
/** Content that zstd makes no smaller. */
async function put(disk: GenerationDisk, store: GenerationStore, slot: SlotKey, of: Content) {
  const { generation = 1, bytes, pace } = of
  const draft = await store.begin(slot, generation)
  await putFiles(draft.dir, { a: randomBytes(bytes) })
  const stored = await draft.commit(manifestOf(generation, { slot }))
  return disk.write(stored, keyOf(slot), { signal, ...(pace && { pace }) })
}
interface Content {
  readonly generation?: number
  readonly bytes: number
  readonly pace?: (bytes: number) => Promise<void>
}
const refused = expect.objectContaining({ code: 'DiskShareFull' })

it('D10.disk-share: one namespace that fills its share is refused, and others are still written', async () => {
  const [store, disk] = [await newStore(), await newDisk()]
  for (const slot of [0, 1, 2]) await put(disk, store, slotOf('greedy', slot), { bytes: 220_000 })
  const before = disk.bytes
  await expect(put(disk, store, slotOf('greedy', 3), { bytes: 200_000 })).rejects.toThrow(
    /namespace greedy has/,
  )
  expect(disk.bytes).toBe(before)
  expect(await files()).toHaveLength(3)
  await put(disk, store, slotOf('modest', 0), { bytes: 150_000 })
  await expect(put(disk, store, slotOf('modest', 1), { bytes: 150_000 })).rejects.toEqual(refused)
  // Each later namespace finds a share of the rest.
  await put(disk, store, slotOf('late', 0), { bytes: 50_000 })
  await put(disk, store, slotOf('last', 0), { bytes: 20_000 })
})

it('D10.disk-share: others that come later do not keep a namespace from renewing its copies at the same size', async () => {
  const [store, disk] = [await newStore(), await newDisk()]
  const slot = slotOf('early', 0)
  for (const each of [0, 1, 2, 3]) await put(disk, store, slotOf('early', each), { bytes: 165_000 })
  await put(disk, store, slotOf('late', 0), { bytes: 150_000 })
  await put(disk, store, slot, { generation: 2, bytes: 165_000 })
  await disk.prune(slot, keyOf(slot), 1)
  await expect(put(disk, store, slot, { generation: 3, bytes: 170_000 })).rejects.toEqual(refused)
})

it('D10.disk-share: a namespace that is alone has as much as in the tmpfs, and all with a share of 100 %', async () => {
  const slot = slotOf('alone', 0)
  const store = await newStore()
  for (const [dir, share, allowed, denied] of [
    ['some', 0.75, 700_000, 760_000],
    ['all', 1, 950_000, 1_010_000],
  ] as const) {
    const disk = await newDisk({ dir, share })
    await expect(put(disk, store, slot, { generation: denied, bytes: denied })).rejects.toThrow(
      share === 1 ? /bytes are in use/ : /namespace alone has/,
    )
    await put(disk, store, slot, { generation: allowed, bytes: allowed })
    const tmpfs = createGenerationStore({
      ...{ dir: join(root, `tmpfs-${dir}`), budget, share, clock, random: seededRandom(1) },
    })
    await expect(tmpfs.begin(slot, 1, { expectedBytes: denied })).rejects.toMatchObject({
      code: 'StoreFull',
    })
    await tmpfs.begin(slot, 1, { expectedBytes: allowed })
  }
})

it('the copy that is replaced counts to the budget only: a namespace with a full share can renew its copies', async () => {
  const [store, disk] = [await newStore(), await newDisk()]
  const [first, second] = [slotOf('busy', 0), slotOf('busy', 1)]
  await put(disk, store, first, { bytes: 350_000 })
  await put(disk, store, second, { bytes: 250_000 })
  for (const generation of [2, 3, 4]) {
    await put(disk, store, second, { generation, bytes: 200_000 })
    await disk.prune(second, keyOf(second), 1)
  }
  // It has to fit into the share with all others of its namespace, and into the budget with the copy that it replaces.
  await expect(put(disk, store, second, { generation: 5, bytes: 420_000 })).rejects.toEqual(refused)
  await expect(put(disk, store, first, { generation: 2, bytes: 520_000 })).rejects.toMatchObject({
    code: 'DiskFull',
  })
  for (const [slot, generation] of [
    [first, 1],
    [second, 4],
  ] as const)
    expect((await disk.of(slot, keyOf(slot))).map(it => it.generation)).toEqual([generation])
})

it('D10.disk-share: after a restart of the agent, files of the earlier process count for their namespaces', async () => {
  const store = await newStore()
  const before = await newDisk()
  for (const slot of [0, 1, 2]) await put(before, store, slotOf('greedy', slot), { bytes: 220_000 })
  const known = new Map([0, 1, 2].map(slot => [keyOf(slotOf('greedy', slot)).tag, 'greedy'] as const))
  const searches = {
    'the slots are searched for': async (disk: GenerationDisk) => {
      for (const slot of [0, 1, 2])
        expect(await disk.of(slotOf('greedy', slot), keyOf(slotOf('greedy', slot)))).toHaveLength(1)
    },
    'the disk is swept': async (disk: GenerationDisk) =>
      expect(await disk.sweep({ complete: true, tags: known })).toBe(0),
  }
  for (const [generation, search] of Object.values(searches).entries()) {
    const disk = await newDisk()
    expect(disk.bytes).toBe(before.bytes)
    await search(disk)
    await expect(
      put(disk, store, slotOf('greedy', 3), { generation: generation + 1, bytes: 100_000 }),
    ).rejects.toEqual(refused)
    const modest = slotOf('modest', 0)
    await put(disk, store, modest, { generation: generation + 1, bytes: 200_000 })
    await disk.prune(modest, keyOf(modest), 0)
  }
})

it('a file whose namespace is not known yet leaves less to all, and its own slot can be written again', async () => {
  const store = await newStore()
  await put(await newDisk(), store, slotOf('greedy', 0), { bytes: 450_000 })
  const disk = await newDisk()
  await expect(put(disk, store, slotOf('modest', 0), { bytes: 450_000 })).rejects.toEqual(refused)
  await put(disk, store, slotOf('greedy', 0), { generation: 2, bytes: 450_000 })
  await put(disk, store, slotOf('modest', 0), { generation: 2, bytes: 40_000 })
})

it('a file counts to its namespace until it is gone, also when its Lease is not there any more', async () => {
  const [store, disk] = [await newStore(), await newDisk()]
  const gone = slotOf('greedy', 0)
  await put(disk, store, gone, { bytes: 600_000 })
  await disk.sweep({ complete: true, tags: new Map([[keyOf(gone).tag, undefined]]) })
  await expect(put(disk, store, slotOf('greedy', 1), { bytes: 200_000 })).rejects.toEqual(refused)
  await disk.sweep({ complete: true, tags: new Map() })
  await put(disk, store, slotOf('greedy', 1), { generation: 2, bytes: 200_000 })
})

it('files that are written at the same time count, those of another namespace and those of the same', async () => {
  for (const [dir, namespaces] of [
    ['same', ['a', 'a', 'a', 'a']],
    ['different', ['a', 'b', 'c', 'd']],
  ] as const) {
    const [store, disk] = [await newStore(dir), await newDisk({ dir: `disk-${dir}` })]
    let most = 0
    const pace = async () => {
      most = Math.max(most, disk.bytes)
      await setImmediate()
    }
    const outcomes = await Promise.allSettled(
      namespaces.map((namespace, slot) =>
        put(disk, store, slotOf(namespace, slot), { bytes: 310_000, pace }),
      ),
    )
    const written = outcomes.filter(({ status }) => status === 'fulfilled').length
    expect([1, 2, 3]).toContain(written)
    expect(most).toBeLessThanOrEqual(dir === 'same' ? 0.75 * budget : budget)
    expect(await files(`disk-${dir}`)).toHaveLength(written)
  }
})

it('a namespace is a name to compare and no path', async () => {
  const [store, disk] = [await newStore(), await newDisk()]
  for (const namespace of ['constructor', 'a-b']) {
    await put(disk, store, slotOf(namespace, 0), { bytes: 100_000 })
    await expect(put(disk, store, slotOf(namespace, 1), { bytes: 800_000 })).rejects.toEqual(refused)
  }
  for (const name of await files()) expect(name).toMatch(/^[0-9a-f]{32}-[0-9a-f]{16}$/)
})
