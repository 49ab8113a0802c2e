import { link, mkdtemp, readdir, readFile, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import { zstdCompressSync, zstdDecompressSync } from 'node:zlib'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { systemClock } from '../../kube/clock.ts'
import { seededRandom, systemRandom } from '../../kube/random.ts'
import { applyDelta, encodeDelta } from '../delta.ts'
import { slotName } from '../manifest.ts'
import { createGenerationStore, type GenerationStore, type Stored } from '../store.ts'
import { manifestOf, putFiles, slotKey } from '../testing/generation.ts'
import { changedMemory, type Memory, memoryImages } from '../testing/memory.ts'

const image = 'pages-1.img'
const keep = 2

let root: string
let source: GenerationStore
let holder: GenerationStore
beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'patch-'))
  source = storeIn('source')
  holder = storeIn('holder')
})
afterEach(() => rm(root, { recursive: true }))

const storeIn = (dir: string): GenerationStore =>
  createGenerationStore({ dir: join(root, dir), budget: 1 << 30, clock: systemClock, random: systemRandom })

const random = seededRandom(11)
const page = () => random.bytes(4096)
const first: Memory = new Map(Array.from({ length: 300 }, (_, index) => [100_000 + index, page()]))

async function save(generation: number, memory: Memory): Promise<Stored> {
  const draft = await source.begin(slotKey, generation)
  await putFiles(draft.dir, { ...memoryImages(1, 1, memory), 'core-1.img': random.bytes(300) })
  return draft.commit(manifestOf(generation))
}

/** Sends it to the holder as the difference to what the holder has. */
async function send(next: Stored, stream = encodeDelta(base(), next)): Promise<Stored> {
  const draft = await holder.begin(slotKey, next.manifest.generation)
  const stored = await applyDelta(stream, base(), draft)
  await holder.prune(slotKey, keep)
  return stored
}

const base = () => {
  const latest = holder.latest(slotKey)
  return latest && source.open(slotKey, latest.manifest.generation) && latest
}

async function expectSame(copy: Stored, original: Stored) {
  expect(copy.manifest).toEqual(original.manifest)
  for (const { path } of original.manifest.files)
    expect(
      (await readFile(join(copy.dir, path))).equals(await readFile(join(original.dir, path))),
      path,
    ).toBe(true)
}

const fileOf = async ({ dir }: Stored): Promise<number> => (await stat(join(dir, image))).ino

const changed = (memory: Memory) => changedMemory(random, memory, 0.02)

/** Both nodes have the first two generations. @returns the memory of the second one. */
async function begun(): Promise<Memory> {
  await send(await save(1, first))
  const second = changed(first)
  await send(await save(2, second))
  return second
}

/** Changes a byte of a page that travels. */
function withWrongByte(delta: Buffer): Buffer {
  const records = zstdDecompressSync(delta)
  const at = records.length - 2000
  records.writeUInt8(records.readUInt8(at) ^ 1, at)
  return zstdCompressSync(records)
}

describe('D7.patch: a file of a generation that is no longer needed', () => {
  it('becomes that of the next one, whatever changes from one to the next', async () => {
    let memory = await begun()
    for (let generation = 3; generation < 30; generation += 1) {
      const oldest = holder.open(slotKey, generation - 2)
      expect(oldest).toBeDefined()
      const file = oldest && (await fileOf(oldest))
      memory = changed(memory)
      const original = await save(generation, memory)
      const stored = await send(original)
      expect(await fileOf(stored)).toBe(file)
      await expectSame(stored, original)
      const before = holder.open(slotKey, generation - 1)
      const theirs = source.open(slotKey, generation - 1)
      if (before && theirs) await expectSame(before, theirs)
      expect(holder.list()).toHaveLength(keep)
    }
  })

  it('stays while it is read, or linked elsewhere', async () => {
    const second = await begun()
    const oldest = holder.open(slotKey, 1)
    if (oldest === undefined) throw new Error('the holder has lost the first generation')
    const bytes = await readFile(join(oldest.dir, image))
    const letGo = holder.retain(slotKey, 1)
    await send(await save(3, changed(second)))
    expect((await readFile(join(oldest.dir, image))).equals(bytes)).toBe(true)
    letGo()

    const next = holder.open(slotKey, 2)
    if (next === undefined) throw new Error('the holder has lost the second generation')
    const elsewhere = join(root, 'link')
    await link(join(next.dir, image), elsewhere)
    const linked = await readFile(elsewhere)
    const original = await save(4, changed(second))
    await expectSame(await send(original), original)
    expect((await readFile(elsewhere)).equals(linked)).toBe(true)
  })

  it('is not taken for a generation that comes as a whole, nor where nothing is known of how many are kept', async () => {
    const second = await begun()
    const third = await save(3, changed(second))
    const [one, two] = [holder.open(slotKey, 1), holder.open(slotKey, 2)]
    const files = [one && (await fileOf(one)), two && (await fileOf(two))]
    const whole = await applyDelta(encodeDelta(undefined, third), undefined, await holder.begin(slotKey, 3))
    expect(files).not.toContain(await fileOf(whole))
    await expectSame(whole, third)

    const other = storeIn('holder')
    await other.load()
    const fourth = await save(4, changed(second))
    const stored = await applyDelta(encodeDelta(third, fourth), whole, await other.begin(slotKey, 4))
    expect(files).not.toContain(await fileOf(stored))
    await expectSame(stored, fourth)
  })

  it.each([
    ['the stream ends early', (bytes: Buffer) => bytes.subarray(0, bytes.length / 2)],
    ['a byte is wrong', withWrongByte],
  ])('is lost if %s, and the newest one is not', async (_, spoil) => {
    const second = await begun()
    const theirs = source.open(slotKey, 2)
    const next = await save(3, changed(second))
    const bytes = spoil(await buffer(encodeDelta(base(), next)))
    const broken = async function* () {
      yield bytes
    }
    await expect(send(next, broken())).rejects.toThrow()
    expect(holder.list().map(({ manifest }) => manifest.generation)).toEqual([2])
    const newest = holder.latest(slotKey)
    if (newest && theirs) await expectSame(newest, theirs)
    // And the next one comes all the same.
    await expectSame(await send(next), next)
  })

  it('is gone after a crash while it was written over', async () => {
    const second = await begun()
    const next = await save(3, changed(second))
    const bytes = await buffer(encodeDelta(base(), next))
    const hangs = async function* () {
      yield bytes.subarray(0, bytes.length - 1)
      await new Promise<never>(() => undefined)
    }
    const name = slotName(slotKey)
    const taken = async () => !(await readdir(join(root, 'holder', name, '1'))).includes(image)
    const draft = await holder.begin(slotKey, 3)
    applyDelta(hangs(), base(), draft).catch(() => undefined)
    await expect.poll(taken).toBe(true)
    const later = storeIn('holder')
    const dropped = await later.load()
    expect(dropped.map(each => each.name)).toContain(`${name}/1`)
    expect(later.list().map(({ manifest }) => manifest.generation)).toEqual([2])
  })
})
