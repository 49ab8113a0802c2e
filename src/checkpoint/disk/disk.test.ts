import { randomBytes } from 'node:crypto'
import { cp, mkdtemp, readdir, readFile, rm, stat, truncate, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createFakeClock } from '../../kube/clock.ts'
import { seededRandom, systemRandom } from '../../kube/random.ts'
import { createGenerationStore, type GenerationStore } from '../store.ts'
import { manifestOf, putFiles, slotKey } from '../testing/generation.ts'
import { createGenerationDisk, type DiskOptions } from './disk.ts'
import { deriveKey } from './generation-key.ts'

let root: string
const clock = createFakeClock()
const key = deriveKey({ agents: Buffer.alloc(32, 1), node: Buffer.alloc(32, 9) }, '02'.repeat(32), slotKey)
const { signal } = new AbortController()
const space = async () => ({ free: 9e12, total: 10e12 })

beforeEach(async () => {
  root = await mkdtemp('/dev/shm/understudy-disk-')
})
afterEach(() => rm(root, { recursive: true }))

const newStore = async (name = 'memory', budget = 1 << 24) => {
  const store = createGenerationStore({ dir: join(root, name), budget, clock, random: seededRandom(1) })
  await store.load()
  return store
}
const newDisk = async (more: Partial<DiskOptions> = {}) => {
  const disk = createGenerationDisk({
    dir: join(root, 'disk'),
    budget: 1 << 24,
    share: 1,
    clock,
    random: systemRandom,
    boot: { id: 'one', uptime: () => clock.monotonic() },
    space,
    ...more,
  })
  await disk.load()
  return disk
}
const files = () => readdir(join(root, 'disk'))

async function add(store: GenerationStore, generation: number, content: Buffer, epoch = 1) {
  const draft = await store.begin(slotKey, generation)
  await putFiles(draft.dir, { 'containers/app/criu/pages-1.img': content, 'shm.tar': 'shm' })
  return draft.commit(manifestOf(generation, { epoch }))
}

describe('generations on the disk', () => {
  it('D9.disk: one comes back after the tmpfs and the process are gone, byte for byte, with its age', async () => {
    const store = await newStore()
    const content = randomBytes(700_000)
    const stored = await add(store, 3, content)
    await (await newDisk()).write(stored, key, { signal })
    await clock.advance(5_000)
    await rm(join(root, 'memory'), { recursive: true })

    const [disk, empty] = [await newDisk(), await newStore()]
    const [sealed] = await disk.of(slotKey, key)
    expect(sealed).toMatchObject({ slot: slotKey, epoch: 1, generation: 3 })
    if (sealed === undefined) throw new Error('nothing is on the disk')
    const back = await disk.read(sealed, key, empty, signal)
    expect(back.manifest).toEqual(stored.manifest)
    expect((await readFile(join(back.dir, 'containers/app/criu/pages-1.img'))).equals(content)).toBe(true)
    expect(clock.monotonic() - back.completedAt + back.pipelineMs).toBe(5_000)
    expect(empty.latest(slotKey)).toBe(back)
  })

  it('after another boot the wall clock of the source tells the age', async () => {
    const store = await newStore()
    await (await newDisk()).write(await add(store, 1, randomBytes(10)), key, { signal })
    const disk = await newDisk({ boot: { id: 'two', uptime: () => 3 } })
    const [sealed] = await disk.of(slotKey, key)
    const back = await disk.read(sealed ?? expect.fail(), key, await newStore('again'), signal)
    const age = Math.max(clock.now() - Date.parse(back.manifest.takenAt), 0)
    expect(clock.monotonic() - back.completedAt + back.pipelineMs).toBe(age)
  })

  it('D9.unreadable: names and files tell nothing of what they hold, and are for root alone', async () => {
    const store = await newStore()
    const content = Buffer.from('customer 4711 '.repeat(9_000))
    await (await newDisk()).write(await add(store, 1, content), key, { signal })
    const [name = ''] = await files()
    const bytes = await readFile(join(root, 'disk', name))
    expect(name).toMatch(/^[0-9a-f]{32}-[0-9a-f]{16}$/)
    for (const word of [
      'shop',
      'carts',
      '0a1b2c3d',
      'customer',
      'manifest',
      'sha256',
      'pages-1.img',
      'node-a',
    ])
      expect(`${name} ${bytes.toString('latin1')}`).not.toContain(word)
    expect((await stat(join(root, 'disk', name))).mode & 0o777).toBe(0o600)
    expect((await stat(join(root, 'disk'))).mode & 0o777).toBe(0o700)
  })

  it('another key finds nothing, not even under the name of the right one', async () => {
    const store = await newStore()
    await (await newDisk()).write(await add(store, 1, randomBytes(9)), key, { signal })
    const disk = await newDisk()
    const other = deriveKey(
      { agents: Buffer.alloc(32, 1), node: Buffer.alloc(32, 9) },
      '03'.repeat(32),
      slotKey,
    )
    expect(await disk.of(slotKey, other)).toEqual([])
    expect(await files()).toHaveLength(1)
    const forged = { ...other, tag: key.tag }
    expect(await disk.of(slotKey, forged)).toEqual([])
  })

  it.each([
    ['truncated', (path: string, size: number) => truncate(path, size - 300)],
    [
      'changed in one bit',
      async (path: string, size: number) => {
        const bytes = await readFile(path)
        bytes.writeUInt8(bytes.readUInt8(size - 40_000) ^ 4, size - 40_000)
        await writeFile(path, bytes)
      },
    ],
  ])('a file that was %s is not brought back, and leaves no draft', async (_, harm) => {
    const store = await newStore()
    const sealed = await (await newDisk()).write(await add(store, 1, randomBytes(900_000)), key, { signal })
    const path = join(root, 'disk', sealed.file)
    await harm(path, (await stat(path)).size)
    const empty = await newStore('empty')
    await expect((await newDisk()).read(sealed, key, empty, signal)).rejects.toMatchObject({
      code: 'Corrupt',
    })
    expect(empty.list()).toEqual([])
    expect(await readdir(join(root, 'empty', 'shop.carts.0.0a1b2c3d')).catch(() => [])).toEqual([])
  })

  it('a file whose head cannot be read is removed: it would take up room for ever', async () => {
    const store = await newStore()
    const disk = await newDisk()
    const sealed = await disk.write(await add(store, 1, randomBytes(10)), key, { signal })
    await writeFile(join(root, 'disk', sealed.file), randomBytes(1_000))
    expect(await (await newDisk()).of(slotKey, key)).toEqual([])
    expect(await files()).toEqual([])
  })

  it('the newest is that of the latest epoch, and what is older goes when it is pruned', async () => {
    const [store, disk] = [await newStore(), await newDisk()]
    for (const [generation, epoch] of [
      [7, 1],
      [2, 2],
      [3, 2],
    ] as const)
      await disk.write(await add(store, generation, randomBytes(10), epoch), key, { signal })
    expect((await disk.of(slotKey, key)).map(it => `${it.epoch}.${it.generation}`)).toEqual([
      '2.3',
      '2.2',
      '1.7',
    ])
    await disk.prune(slotKey, key, 1)
    expect((await disk.of(slotKey, key)).map(it => `${it.epoch}.${it.generation}`)).toEqual(['2.3'])
    expect(await files()).toHaveLength(1)
  })

  it('D9.swept: sweeps what no live slot owns, and nothing else', async () => {
    const [store, disk] = [await newStore(), await newDisk()]
    const stored = await add(store, 1, randomBytes(10))
    const gone = deriveKey(
      { agents: Buffer.alloc(32, 1), node: Buffer.alloc(32, 9) },
      '05'.repeat(32),
      slotKey,
    )
    await disk.write(stored, key, { signal })
    await disk.write(stored, gone, { signal })
    expect(await disk.sweep({ complete: true, tags: new Map([[key.tag, undefined]]) })).toBe(1)
    expect((await files()).map(name => name.slice(0, 32))).toEqual([key.tag])
  })
})

describe('budgets of the disk', () => {
  it('what does not fit is refused, and leaves nothing', async () => {
    const [store, disk] = [await newStore(), await newDisk({ budget: 600_000 })]
    await disk.write(await add(store, 1, randomBytes(400_000)), key, { signal })
    const before = disk.bytes
    await expect(
      disk.write(await add(store, 2, randomBytes(400_000)), key, { signal }),
    ).rejects.toMatchObject({
      code: 'DiskFull',
    })
    expect(disk.bytes).toBe(before)
    expect(await files()).toHaveLength(1)
    expect((await disk.of(slotKey, key)).map(it => it.generation)).toEqual([1])
  })

  it('D9.floor: a filesystem that has less than 15 % free is left alone', async () => {
    let free = 14
    const [store, disk] = [await newStore(), await newDisk({ space: async () => ({ free, total: 100 }) })]
    const stored = await add(store, 1, randomBytes(10))
    await expect(disk.write(stored, key, { signal })).rejects.toMatchObject({ code: 'DiskLow' })
    expect(await files()).toEqual([])
    free = 1e9
    await disk.write(stored, key, { signal })
  })

  it('looks at the filesystem while it writes, not only before', async () => {
    let looks = 0
    const limited = async () => {
      looks += 1
      return looks > 2 ? { free: 1, total: 1e12 } : { free: 9e11, total: 1e12 }
    }
    const [store, disk] = [await newStore(), await newDisk({ lookEvery: 1 << 20, space: limited })]
    const stored = await add(store, 1, randomBytes(5 << 20))
    await expect(disk.write(stored, key, { signal })).rejects.toMatchObject({ code: 'DiskLow' })
    expect(looks).toBe(3)
    expect(await files()).toEqual([])
  })

  it('bringing back checks the room in the tmpfs first', async () => {
    const [store, disk] = [await newStore(), await newDisk()]
    const sealed = await disk.write(await add(store, 1, randomBytes(300_000)), key, { signal })
    const small = await newStore('small', 200_000)
    await expect(disk.read(sealed, key, small, signal)).rejects.toMatchObject({ code: 'StoreFull' })
    expect(await readdir(join(root, 'small'))).toEqual([])
  })

  it('counts what an earlier process has left, and drops what was not finished', async () => {
    const [store, first] = [await newStore(), await newDisk()]
    await first.write(await add(store, 1, randomBytes(300_000)), key, { signal })
    await cp(join(root, 'disk', (await files())[0] ?? ''), join(root, 'disk', '.new-0011223344556677'))
    await writeFile(join(root, 'disk', 'notes'), 'of somebody else')
    const second = await newDisk()
    expect(second.bytes).toBe(first.bytes)
    expect((await files()).filter(name => name.startsWith('.new-'))).toEqual([])
    expect(await files()).toContain('notes')
  })

  it('writing is paced, and ends with its signal', async () => {
    const [store, disk] = [await newStore(), await newDisk()]
    const stored = await add(store, 1, randomBytes(900_000))
    const stop = new AbortController()
    const paced: number[] = []
    const pace = async (bytes: number) => {
      paced.push(bytes)
      if (paced.length === 2) stop.abort(new Error('over'))
    }
    await expect(disk.write(stored, key, { signal: stop.signal, pace })).rejects.toThrow('over')
    expect(await files()).toEqual([])
    expect(paced.length).toBe(2)
  })
})
