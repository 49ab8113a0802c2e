// Long because every case needs the same tmpfs and disk of a node.
import { randomBytes } from 'node:crypto'
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { eventually } from '../../../test/support/eventually.ts'
import { AgentError } from '../../api/agent-errors.ts'
import type { Halves } from '../../api/disk-half.ts'
import type { SlotKey } from '../../api/slot-key.ts'
import type { SlotLease } from '../../api/slot-lease.ts'
import { createGenerationDisk, type DiskOptions } from '../../checkpoint/disk/disk.ts'
import { deriveKey } from '../../checkpoint/disk/generation-key.ts'
import { slotName } from '../../checkpoint/manifest.ts'
import { createGenerationStore, type Stored } from '../../checkpoint/store.ts'
import { manifestOf, putFiles, slotKey } from '../../checkpoint/testing/generation.ts'
import { createFakeClock, type FakeClock } from '../../kube/clock.ts'
import { silentLog as log } from '../../kube/log.ts'
import { systemRandom as random } from '../../kube/random.ts'
import { movingSlots } from '../observe/moving.ts'
import { policy } from '../testing/fake/snapshots.ts'
import { createDiskKeeper, type DiskKeeper } from './keeper.ts'

const name = 'shop.carts.0.0a1b2c3d'
const seal = '02'.repeat(32)
const lease = (more: Partial<SlotLease> = {}): SlotLease => ({
  ...slotKey,
  group: 'carts',
  holder: { name: 'p', uid: 'uid-p' },
  epoch: 3,
  node: 'a',
  heir: undefined,
  ip: undefined,
  holders: ['b'],
  seal,
  policy: policy(),
  ...more,
})

let root: string
let clock: FakeClock
let stop: AbortController
beforeEach(async () => {
  root = await mkdtemp('/dev/shm/understudy-keeper-')
  clock = createFakeClock()
  stop = new AbortController()
})
afterEach(async () => {
  stop.abort(new Error('over'))
  await rm(root, { recursive: true, force: true })
})

interface World {
  readonly store: ReturnType<typeof createGenerationStore>
  readonly disk: ReturnType<typeof createGenerationDisk>
  readonly keeper: DiskKeeper
  readonly recalled: Stored[]
  slots: readonly SlotLease[] | undefined
  /** Absent: those that the Leases hand over. */
  moving?: ReadonlySet<string>
  /** undefined: the Secret cannot be read. */
  half: Uint8Array | undefined
  /** Those of the node. */
  halves: Halves
}

/** Simulates the start of a node: `memory` is lost at a reboot, `disk` is not. */
async function boot({
  memory = 'memory',
  budget = 1 << 24,
  share = 1,
  bytesPerSecond = 1e15,
  slots = [lease()] as readonly SlotLease[] | undefined,
  disk: more = {} as Partial<DiskOptions>,
} = {}): Promise<World> {
  const recalled: Stored[] = []
  const store = createGenerationStore({
    ...{ dir: join(root, memory), budget, share, clock, random },
    relieve: (bytes, namespace) => world.keeper.relieve(bytes, namespace),
  })
  await store.load()
  const disk = createGenerationDisk({
    ...{ dir: join(root, 'disk'), budget: 1 << 24, share: 0.75, clock, random },
    boot: { id: 'one', uptime: () => clock.monotonic() },
    space: async () => ({ free: 9e12, total: 10e12 }),
    ...more,
  })
  await disk.load()
  const keeper = createDiskKeeper({
    ...{ disk, store, node: 'b', everyMs: 60_000, bytesPerSecond, clock, log },
    keyParts: async () => {
      if (world.half === undefined) throw new AgentError('KeyMissing')
      return { agents: world.half, node: world.halves }
    },
    slots: () => world.slots,
    moving: () => world.moving ?? movingSlots({ node: 'b', slots: world.slots ?? [], pods: [] }, 0),
    onRecalled: stored => recalled.push(stored),
    changed: () => undefined,
  })
  const world: World = {
    store,
    disk,
    keeper,
    recalled,
    slots,
    half: Buffer.alloc(32, 1),
    halves: [Buffer.alloc(32, 9)],
  }
  return world
}

async function add({ store }: World, generation: number, { bytes = 50_000, epoch = 3, slot = slotKey } = {}) {
  const draft = await store.begin(slot, generation)
  await putFiles(draft.dir, { 'a.img': randomBytes(bytes) })
  return draft.commit(manifestOf(generation, { epoch, slot }))
}

const files = async () => (await readdir(join(root, 'disk'))).filter(name => !name.startsWith('.'))
const written = (world: World, generation: number) =>
  eventually(() => {
    world.keeper.noted()
    expect(world.keeper.onDisk('shop.carts.0.0a1b2c3d')?.generation).toBe(generation)
  })

describe('the disk of a node', () => {
  it('D16.suspend: has the last memory of a suspended slot at once, also where the pod was', async () => {
    const world = await boot({ slots: [lease({ node: 'b', holders: ['a'] })] })
    await add(world, 1)
    void world.keeper.run(stop.signal)
    world.keeper.noted()
    await clock.advance(30_000)
    expect(await files()).toEqual([])
    world.slots = [lease({ node: 'b', holders: ['a'], suspended: true })]
    await written(world, 1)
    await add(world, 2)
    await clock.advance(25_000)
    await written(world, 2)
  })

  it('D9.keeper: is not written while a primary is stopped for its successor', async () => {
    const world = await boot({ slots: [lease({ handover: 'uid-h' })] })
    await add(world, 1)
    void world.keeper.run(stop.signal)
    world.keeper.noted()
    await clock.advance(10_000)
    expect(await files()).toEqual([])
    // A suspended primary has no successor, and its memory has to reach the disk.
    const { holder } = lease()
    world.slots = [lease({ handover: holder.uid })]
    await clock.advance(1_000)
    await written(world, 1)
  })

  it('D9.keeper: has the newest of each slot, written once a minute, and no older one', async () => {
    const world = await boot()
    await add(world, 1)
    void world.keeper.run(stop.signal)
    await written(world, 1)
    for (const generation of [2, 3, 4]) await add(world, generation)
    await clock.advance(30_000)
    await eventually(async () => expect(await files()).toHaveLength(1))
    expect(world.keeper.onDisk('shop.carts.0.0a1b2c3d')?.generation).toBe(1)
    await clock.advance(31_000)
    await written(world, 4)
    await eventually(async () => expect(await files()).toHaveLength(1))
    expect(world.keeper.trouble).toBeUndefined()
  })

  it('D7.policy: nothing is added while the policy of a slot is unknown, and what is there stays and is loaded', async () => {
    const before = await boot()
    await add(before, 7)
    const run = new AbortController()
    const running = before.keeper.run(run.signal)
    await written(before, 7)
    run.abort(new Error('over'))
    await running
    const unknown = await boot({ memory: 'lost', slots: [lease({ policy: undefined })] })
    await unknown.keeper.recall(stop.signal)
    expect(unknown.store.latest(slotKey)?.manifest.generation).toBe(7)
    await add(unknown, 8)
    void unknown.keeper.run(stop.signal)
    await clock.advance(200_000)
    expect(await files()).toHaveLength(1)
    expect(unknown.keeper.onDisk(name)?.generation).toBe(7)
  })

  it('nothing of a slot that this node does not hold, or whose Lease has no seal', async () => {
    const { seal: _, ...unsealed } = lease()
    for (const slot of [lease({ node: 'b', holders: ['c'] }), unsealed]) {
      const world = await boot({ slots: [slot] })
      await add(world, 1).catch(() => undefined)
      const run = new AbortController()
      const running = world.keeper.run(run.signal)
      await clock.advance(200_000)
      run.abort(new Error('over'))
      await running
      expect(await files()).toEqual([])
    }
  })

  it('D7.kept: what a node held of a slot whose primary it got is brought back, and nothing more is written of it', async () => {
    const before = await boot()
    await add(before, 7)
    const run = new AbortController()
    const running = before.keeper.run(run.signal)
    await written(before, 7)
    run.abort(new Error('power cut'))
    await running
    const world = await boot({ memory: 'other', slots: [lease({ node: 'b', holders: ['c'], epoch: 4 })] })
    expect(world.keeper.isRead(name)).toBe(false)
    await world.keeper.recall(stop.signal)
    expect(world.recalled.map(({ manifest }) => manifest.generation)).toEqual([7])
    expect(world.keeper.onDisk(name)?.generation).toBe(7)
    await add(world, 8, { epoch: 4 })
    void world.keeper.run(stop.signal)
    await clock.advance(200_000)
    expect(world.keeper.onDisk(name)?.generation).toBe(7)
  })

  it('D9.reboot: what the tmpfs has lost is brought back before anything else, if its epoch can be', async () => {
    const before = await boot()
    const stored = await add(before, 7)
    const run = new AbortController()
    const running = before.keeper.run(run.signal)
    await written(before, 7)
    run.abort(new Error('power cut'))
    await running

    const late = await boot({ memory: 'second', slots: [lease({ epoch: 2 })] })
    await late.keeper.recall(stop.signal)
    expect(late.store.list()).toEqual([])

    const after = await boot({ memory: 'third' })
    await after.keeper.recall(stop.signal)
    expect(after.store.latest(slotKey)?.manifest).toEqual(stored.manifest)
    expect(after.recalled).toHaveLength(1)
    expect(await readFile(join(after.store.latest(slotKey)?.dir ?? '', 'a.img'))).toEqual(
      await readFile(join(stored.dir, 'a.img')),
    )
  })

  const leftOnDisk = async () => {
    const before = await boot()
    await add(before, 1, { bytes: 400_000 })
    const run = new AbortController()
    const running = before.keeper.run(run.signal)
    await written(before, 1)
    run.abort(new Error('power lost'))
    await running.catch(() => undefined)
  }
  const slotNamed = 'shop.carts.0.0a1b2c3d'

  it('D9.reboot: a file that turns out to be damaged is not said to be there', async () => {
    await leftOnDisk()
    const [name = ''] = await files()
    const path = join(root, 'disk', name)
    const data = await readFile(path)
    data.writeUInt8(data.readUInt8(data.length - 5_000) ^ 0xff, data.length - 5_000)
    await writeFile(path, data)
    const after = await boot({ memory: 'other' })
    await after.keeper.recall(stop.signal)
    expect(after.recalled).toEqual([])
    expect(await files()).toEqual([])
    expect([after.keeper.onDisk(slotNamed), after.keeper.isRead(slotNamed)]).toEqual([undefined, true])
  })

  it('D9.reboot: what had no place in the tmpfs is brought back once there is one, and the reason is told until then', async () => {
    await leftOnDisk()
    const after = await boot({ memory: 'other', budget: 500_000 })
    const other = { ...slotKey, name: 'carts-7' }
    await add(after, 1, { bytes: 300_000, slot: other })
    await after.keeper.recall(stop.signal)
    expect(after.store.latest(slotKey)).toBeUndefined()
    expect(after.keeper.onDisk(slotNamed)?.generation).toBe(1)
    expect(after.keeper.trouble?.reason).toBe('StoreFull')
    await after.store.remove(other)
    void after.keeper.run(stop.signal)
    await eventually(async () => {
      await clock.advance(5_000)
      expect(after.store.latest(slotKey)?.manifest.generation).toBe(1)
    })
  })

  it('what the tmpfs has and is newer stays', async () => {
    const world = await boot()
    await add(world, 1)
    const run = new AbortController()
    const running = world.keeper.run(run.signal)
    await written(world, 1)
    run.abort(new Error('over'))
    await running
    await add(world, 2)
    await world.keeper.recall(stop.signal)
    expect(world.recalled).toEqual([])
    expect(world.store.latest(slotKey)?.manifest.generation).toBe(2)
  })

  it('D9.gone: with the Lease goes the key: nobody can read the file, and after a minute it is removed', async () => {
    const before = await boot()
    await add(before, 1)
    const run = new AbortController()
    const running = before.keeper.run(run.signal)
    await written(before, 1)
    run.abort(new Error('over'))
    await running
    // The set was deleted. A set of the same name has another half of the key; the agents' Secret is the same.
    const namesake = lease({ seal: '03'.repeat(32) })
    const after = await boot({ memory: 'second', slots: [namesake] })
    await after.keeper.recall(stop.signal)
    expect(after.store.list()).toEqual([])
    expect(await files()).toHaveLength(1)
    void after.keeper.run(stop.signal)
    await eventually(async () => {
      await clock.advance(10_000)
      expect(await files()).toEqual([])
    })
  })

  it('D9.whole-list: nothing is swept while not every slot is known, or the key is not', async () => {
    const before = await boot()
    await add(before, 1)
    const run = new AbortController()
    const running = before.keeper.run(run.signal)
    await written(before, 1)
    run.abort(new Error('over'))
    await running
    for (const [slots, half] of [
      [undefined, Buffer.alloc(32, 1)],
      [[lease({ name: 'carts-1' })], undefined],
    ] as const) {
      const world = await boot({ memory: 'other', slots })
      Object.assign(world, { half })
      const again = new AbortController()
      const going = world.keeper.run(again.signal)
      for (let i = 0; i < 20; i += 1) await clock.advance(10_000)
      expect(await files()).toHaveLength(1)
      again.abort(new Error('over'))
      await going
    }
  })

  it('a key that is missing is told with its cure, and writing begins when it is there', async () => {
    const world = await boot()
    world.half = undefined
    await add(world, 1)
    void world.keeper.run(stop.signal)
    await eventually(() => expect(world.keeper.trouble?.reason).toBe('KeyMissing'))
    expect(world.keeper.trouble?.message).toContain('deploy/agent')
    world.half = Buffer.alloc(32, 1)
    await eventually(async () => {
      await clock.advance(10_000)
      expect(await files()).toHaveLength(1)
      expect(world.keeper.trouble).toBeUndefined()
    })
  })

  it('D7.disk-budget: a budget that is full is told with its cure; memory goes on', async () => {
    const world = await boot({ disk: { budget: 20_000 } })
    await add(world, 1)
    void world.keeper.run(stop.signal)
    await eventually(() => expect(world.keeper.trouble?.reason).toBe('DiskFull'))
    expect(world.keeper.trouble?.message).toContain('--disk-budget')
    await add(world, 2)
    expect(world.store.latest(slotKey)?.manifest.generation).toBe(2)
  })
})

describe('the share of a namespace on the disk', () => {
  const first = slotKey
  const second = { ...slotKey, name: 'carts-1' }
  const modest = { ...slotKey, namespace: 'modest' }
  const leases = [first, second, modest].map(slot => lease(slot))
  const shared = { budget: 500_000 }
  const on = ({ keeper }: World, slot: SlotKey) => keeper.onDisk(slotName(slot))?.generation
  const refusalOf = ({ keeper }: World, slot: SlotKey) => keeper.refusalOf(slotName(slot))
  /** Until this holds; every slot gets its turns meanwhile. */
  const tried = (world: World, expected: () => void) =>
    eventually(async () => {
      await clock.advance(20_000)
      world.keeper.noted()
      expected()
    })

  it('D10.disk-share: the slot that has no room in it is told, and is no trouble of the disk or of another namespace', async () => {
    const world = await boot({ slots: leases, disk: shared })
    await add(world, 1, { bytes: 200_000, slot: first })
    await clock.advance(1)
    await add(world, 1, { bytes: 180_000, slot: second })
    void world.keeper.run(stop.signal)
    await tried(world, () => expect(refusalOf(world, second)).toBe('DiskShareFull'))
    await add(world, 1, { bytes: 100_000, slot: modest })
    await tried(world, () => expect(on(world, modest)).toBe(1))
    expect([on(world, first), on(world, second)]).toEqual([1, undefined])
    expect([refusalOf(world, first), refusalOf(world, modest)]).toEqual([undefined, undefined])
    expect([...world.keeper.refusals]).toEqual(['DiskShareFull'])
    expect(world.keeper.trouble).toBeUndefined()
    // The agent still writes the other slots, and keeps newer memory of this one in the tmpfs.
    await add(world, 2, { bytes: 100_000, slot: modest })
    await add(world, 2, { bytes: 180_000, slot: second })
    await tried(world, () => expect(on(world, modest)).toBe(2))
    expect(refusalOf(world, second)).toBe('DiskShareFull')
    // Once the namespace has less, the slot is written at its next turn.
    world.slots = leases.slice(1)
    await tried(world, () => expect([on(world, second), refusalOf(world, second)]).toEqual([2, undefined]))
  })

  it('D10.disk-share: an agent that starts again counts what it finds before it writes', async () => {
    const before = await boot({ slots: leases, disk: shared })
    await add(before, 1, { bytes: 200_000, slot: first })
    const run = new AbortController()
    const running = before.keeper.run(run.signal)
    await tried(before, () => expect(on(before, first)).toBe(1))
    run.abort(new Error('over'))
    await running
    const after = await boot({ slots: leases, disk: shared })
    await add(after, 1, { bytes: 180_000, slot: second })
    void after.keeper.run(stop.signal)
    await tried(after, () => expect(refusalOf(after, second)).toBe('DiskShareFull'))
    expect(await files()).toHaveLength(1)
    await add(after, 1, { bytes: 100_000, slot: modest })
    await tried(after, () => expect(on(after, modest)).toBe(1))
  })

  it('two copies of a slot, left by an agent that ended between writing and removing, do not fill the disk for ever', async () => {
    const before = await boot({ slots: leases, disk: shared })
    const key = deriveKey({ agents: Buffer.alloc(32, 1), node: Buffer.alloc(32, 9) }, seal, first)
    for (const generation of [1, 2]) {
      const stored = await add(before, generation, { bytes: 190_000, slot: first })
      await before.disk.write(stored, key, { signal: stop.signal })
    }
    const after = await boot({ slots: leases, disk: shared })
    await add(after, 3, { bytes: 190_000, slot: first })
    void after.keeper.run(stop.signal)
    await tried(after, () => expect(on(after, first)).toBe(3))
    expect(await files()).toHaveLength(1)
  })

  it('a slot that this node does not write any more is not told as refused', async () => {
    const world = await boot({ slots: leases, disk: { budget: 100_000 } })
    await add(world, 1, { bytes: 90_000, slot: first })
    void world.keeper.run(stop.signal)
    await tried(world, () => expect(refusalOf(world, first)).toBe('DiskShareFull'))
    world.slots = [lease({ ...first, holders: ['c'], node: 'b' })]
    await tried(world, () => expect([...world.keeper.refusals]).toEqual([]))
  })
})

describe('keys that change', () => {
  const before = { agents: Buffer.alloc(32, 1), node: undefined }

  it('D10.disk-half: a copy of the version before is read back, and written again with the present key, also of an idle slot', async () => {
    const earlier = await boot()
    const key = deriveKey(before, seal, slotKey)
    await earlier.disk.write(await add(earlier, 7), key, { signal: stop.signal })
    const world = await boot({ memory: 'lost' })
    await world.keeper.recall(stop.signal)
    expect(world.store.latest(slotKey)?.manifest.generation).toBe(7)
    expect(world.keeper.onDisk(name)?.generation).toBe(7)
    void world.keeper.run(stop.signal)
    await eventually(async () => {
      await clock.advance(10_000)
      expect(await files()).toEqual([expect.not.stringMatching(`^${key.tag}`)])
    })
    expect(world.keeper.onDisk(name)?.generation).toBe(7)
  })

  it('D10.disk-half: a new key of the operator loses nothing while its earlier one is there, not even what only the disk has', async () => {
    const earlier = await boot()
    await add(earlier, 7)
    const run = new AbortController()
    const running = earlier.keeper.run(run.signal)
    await written(earlier, 7)
    run.abort(new Error('over'))
    await running
    const [old] = await files()
    // There is no room for it in the tmpfs.
    const world = await boot({ memory: 'small', budget: 10_000 })
    void world.keeper.run(stop.signal)
    await clock.advance(10_000)
    world.halves = [Buffer.alloc(32, 8), Buffer.alloc(32, 9)]
    for (let i = 0; i < 20; i += 1) await clock.advance(10_000)
    await eventually(async () => {
      await clock.advance(10_000)
      expect(world.keeper.onDisk(name)?.generation).toBe(7)
    })
    expect(await files()).toEqual([old])
    stop.abort(new Error('over'))
    stop = new AbortController()
    const after = await boot({ memory: 'large' })
    after.halves = world.halves
    void after.keeper.run(stop.signal)
    await eventually(async () => {
      await clock.advance(10_000)
      expect(after.store.latest(slotKey)?.manifest.generation).toBe(7)
      expect(await files()).toHaveLength(1)
      expect(await files()).not.toContain(old)
    })
  })

  it('where the disk is empty a key that is missing hides nothing', async () => {
    const world = await boot()
    world.half = undefined
    await world.keeper.recall(stop.signal)
    expect(world.keeper.isRead(name)).toBe(true)
    await world.disk.write(await add(world, 1), deriveKey(before, seal, slotKey), { signal: stop.signal })
    expect(world.keeper.isRead(name)).toBe(false)
  })

  it('a copy that was removed for want of room is not told any more', async () => {
    const earlier = await boot()
    const stored = await add(earlier, 7, { bytes: 150_000 })
    await earlier.disk.write(stored, deriveKey(before, seal, slotKey), { signal: stop.signal })
    const world = await boot({ memory: 'lost', disk: { budget: 160_000, share: 1 } })
    await world.keeper.recall(stop.signal)
    expect(world.keeper.onDisk(name)?.generation).toBe(7)
    await add(world, 8, { bytes: 170_000 })
    void world.keeper.run(stop.signal)
    await eventually(async () => {
      await clock.advance(10_000)
      expect(await files()).toEqual([])
      expect(world.keeper.onDisk(name)).toBeUndefined()
    })
  })

  it('a copy of the version before that leaves no room for a new one is removed', async () => {
    const earlier = await boot()
    const stored = await add(earlier, 7, { bytes: 150_000 })
    await earlier.disk.write(stored, deriveKey(before, seal, slotKey), { signal: stop.signal })
    const world = await boot({ memory: 'lost', disk: { budget: 250_000, share: 1 } })
    await world.keeper.recall(stop.signal)
    await add(world, 8, { bytes: 150_000 })
    void world.keeper.run(stop.signal)
    await eventually(async () => {
      await clock.advance(10_000)
      expect(world.keeper.onDisk(name)?.generation).toBe(8)
    })
    expect(await files()).toHaveLength(1)
  })

  it('a copy of the version before that is newer than what the tmpfs has is not removed for it', async () => {
    const earlier = await boot()
    const key = deriveKey(before, seal, slotKey)
    await earlier.disk.write(await add(earlier, 9, { bytes: 150_000 }), key, { signal: stop.signal })
    for (const budget of [1 << 24, 250_000]) {
      // The disk is read while the tmpfs has no room for its copy.
      const world = await boot({ memory: `small-${budget}`, budget: 120_000, disk: { budget, share: 1 } })
      await add(world, 7, { bytes: 100_000 })
      const run = new AbortController()
      const running = world.keeper.run(run.signal)
      for (let i = 0; i < 20; i += 1) await clock.advance(10_000)
      run.abort(new Error('over'))
      await running
      const [newest] = await world.disk.of(slotKey, key)
      expect(newest?.generation).toBe(9)
    }
  })

  it('after an exchange of the key nothing counts as on the disk until it is written again', async () => {
    const world = await boot()
    await add(world, 1)
    void world.keeper.run(stop.signal)
    await written(world, 1)
    const [old] = await files()
    world.half = Buffer.alloc(32, 3)
    await eventually(async () => {
      await clock.advance(10_000)
      expect(await files()).toHaveLength(1)
      expect(await files()).not.toContain(old)
    })
    expect(world.keeper.onDisk(name)?.generation).toBe(1)
  })
})

describe('a tmpfs that is full', () => {
  it('D7.older-to-disk: older generations make room once the disk has one to fall back on', async () => {
    const world = await boot({ budget: 300_000 })
    await add(world, 1, { bytes: 100_000 })
    await add(world, 2, { bytes: 100_000 })
    await add(world, 3, { bytes: 100_000 })
    expect(world.store.list().map(({ manifest }) => manifest.generation)).not.toContain(1)
    expect(world.store.latest(slotKey)?.manifest.generation).toBe(3)
    expect(await files()).toHaveLength(1)
    // The generation can be read back on request, if there is room.
    const back: number[] = []
    await world.store.drop(slotKey, 3, 3)
    for await (const { manifest } of world.keeper.others(lease(), stop.signal)) back.push(manifest.generation)
    expect(back).toEqual([1])
  })

  it('D7.older-to-disk: older generations of a namespace that has used up its share make room, and those of other namespaces stay', async () => {
    const other = { ...slotKey, namespace: 'blue' }
    const slots = [lease(), lease({ namespace: 'blue' })].map(each => ({
      ...each,
      node: 'b',
      holders: ['c'],
    }))
    const world = await boot({ budget: 700_000, share: 0.5, slots })
    for (const generation of [1, 2]) await add(world, generation, { bytes: 60_000, slot: other })
    for (const generation of [1, 2, 3, 4]) await add(world, generation, { bytes: 90_000 })
    const kept = world.store
      .list()
      .map(({ manifest: { slot, generation } }) => `${slot.namespace} ${generation}`)
    expect(kept.sort()).toEqual(['blue 1', 'blue 2', 'shop 3', 'shop 4'])
  })

  it.each([
    { when: 'at once while the primary is stopped for its successor', handover: 'uid-h', keep: 2 },
    { when: 'otherwise if no other generation can be removed', handover: undefined, keep: 1 },
  ])(
    'D9.keeper: the write of a generation to the disk is given up when a newer generation needs the room: $when',
    async ({ handover, keep }) => {
      const world = await boot({ budget: 20_000 + (keep + 1) * 160_000, bytesPerSecond: 1_000 })
      await add(world, 1, { bytes: 150_000 })
      void world.keeper.run(stop.signal)
      world.keeper.noted()
      await eventually(async () => expect((await readdir(join(root, 'disk'))).length).toBeGreaterThan(0))
      world.slots = [lease({ ...(handover && { handover }) })]
      for (let generation = 2; generation <= keep + 2; generation += 1) {
        await add(world, generation, { bytes: 150_000 })
        await world.store.prune(slotKey, keep)
      }
      const left = world.store.list().map(({ manifest }) => manifest.generation)
      expect(left).toEqual(keep === 1 ? [3] : [4, 3])
    },
  )

  it('D9.keeper: a write is given up during a move, so that what arrives can be written over an older generation', async () => {
    const bytes = 1_500_000
    const world = await boot({ budget: 10 * bytes, bytesPerSecond: bytes / 15 })
    await add(world, 1, { bytes })
    void world.keeper.run(stop.signal)
    world.keeper.noted()
    await eventually(async () => expect((await readdir(join(root, 'disk'))).length).toBeGreaterThan(0))
    await add(world, 2, { bytes })
    await world.store.prune(slotKey, 2)
    const draft = await world.store.begin(slotKey, 3)
    expect(draft.takeSpare()).toBeUndefined()
    world.slots = [lease({ handover: 'uid-h' })]
    // The write would need 15 s.
    for (let ms = 0; ms < 3_000; ms += 100) await clock.advance(100)
    await eventually(async () => expect(draft.takeSpare()?.manifest.generation).toBe(1))
    expect(await files()).toEqual([])
  })

  const mover = new Set(['red.others.0.0a1b2c3d'])
  /** Adds a generation of one piece, which takes 2 s, and returns after how many seconds it is on the disk. */
  const untilWritten = async (world: World, generation: number): Promise<number> => {
    await add(world, generation, { bytes: 200_000 })
    world.keeper.noted()
    const since = clock.monotonic()
    await eventually(async () => {
      await clock.advance(500)
      expect(world.keeper.onDisk('shop.carts.0.0a1b2c3d')?.generation).toBe(generation)
    })
    return (clock.monotonic() - since) / 1000
  }
  const pass = async (seconds: number) => {
    for (let half = 0; half < 2 * seconds; half += 1) await clock.advance(500)
  }

  it('D9.keeper: writes give way to moves for 20 s', async () => {
    const world = await boot({ bytesPerSecond: 100_000 })
    world.moving = mover
    void world.keeper.run(stop.signal)
    const seconds = await untilWritten(world, 1)
    expect(seconds).toBeGreaterThan(20)
    // The slot counts as moving for longer.
    expect(seconds).toBeLessThan(60)
  })

  it('D9.keeper: a slot counts as moving for a minute, and again when it moves again', async () => {
    const world = await boot({ bytesPerSecond: 100_000 })
    world.moving = mover
    void world.keeper.run(stop.signal)
    await pass(62)
    expect(await untilWritten(world, 1)).toBeLessThan(20)
    world.moving = new Set()
    await pass(50)
    world.moving = mover
    expect(await untilWritten(world, 2)).toBeGreaterThan(20)
  })

  it('what has nothing to fall back on stays, and the room is refused', async () => {
    const world = await boot({ budget: 300_000, disk: { budget: 10_000 } })
    await add(world, 1, { bytes: 100_000 })
    await add(world, 2, { bytes: 100_000 })
    await expect(add(world, 3, { bytes: 100_000 })).rejects.toMatchObject({ code: 'StoreFull' })
    expect(world.store.list().map(({ manifest }) => manifest.generation)).toEqual([2, 1])
  })

  it('at the source older ones go without a copy: nobody brings them back there', async () => {
    const world = await boot({ budget: 300_000, slots: [lease({ node: 'b', holders: ['c'] })] })
    for (const generation of [1, 2, 3]) await add(world, generation, { bytes: 100_000 })
    expect(world.store.list().map(({ manifest }) => manifest.generation)).toEqual([3, 2])
    expect(await files()).toEqual([])
  })

  it('a draft that could only tell late how much it needs finds the room at its next try', async () => {
    const world = await boot({ budget: 300_000, slots: [lease({ node: 'b', holders: ['c'] })] })
    for (const generation of [1, 2]) await add(world, generation, { bytes: 100_000 })
    const other = { ...slotKey, name: 'carts-1' }
    await expect(add(world, 1, { bytes: 150_000, slot: other })).rejects.toMatchObject({ code: 'StoreFull' })
    // The first attempt could not know how much room was missing; the second one does.
    await add(world, 1, { bytes: 150_000, slot: other })
    expect(world.store.latest(slotKey)?.manifest.generation).toBe(2)
  })
})
