/** Long because every case needs the same pair of nodes whose memory changes. */
import { link, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import { zstdCompressSync, zstdDecompressSync } from 'node:zlib'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { buildProgram } from '../../../native/build.ts'
import { systemClock } from '../../kube/clock.ts'
import { seededRandom, systemRandom } from '../../kube/random.ts'
import { applyDelta, encodeDelta } from '../delta.ts'
import { slotName } from '../manifest.ts'
import { type CopyPages, createPageProgram } from '../page-program.ts'
import { createGenerationStore, type GenerationStore, type Stored } from '../store.ts'
import { manifestOf, putFiles, slotKey } from '../testing/generation.ts'
import { changedMemory, type Memory, memoryImages } from '../testing/memory.ts'
import { openSpare } from './patch.ts'

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

const storeIn = (dir: string, budget = 1 << 30): GenerationStore =>
  createGenerationStore({ dir: join(root, dir), budget, clock: systemClock, random: systemRandom })

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

/** Writes over the first page that is to be copied. */
const spoil =
  'set -- $(head -c 24 | od -An -v -t u8 -w24); dd if=/dev/urandom of=/dev/fd/4 bs=4096 seek=$(($2 / 4096)) count=1 conv=notrunc 2>/dev/null'

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

  it.each([
    ['by the program of the node', buildProgram, 0],
    ['by this process where the program is missing', undefined, 1],
    ['by this process where the program fails', 'exit 1', 9],
    ['by this process where the program fails half way', `${spoil}; exit 1`, 9],
    ['by this process where the program has not heard of all', `${spoil}; printf 12345678`, 0],
  ] as const)('pages that have another place are copied %s', async (_, program, warned) => {
    const warnings: unknown[] = []
    const log = { warn: (...told: unknown[]) => void warnings.push(told) }
    if (typeof program === 'string')
      await writeFile(join(root, 'pages'), `#!/bin/sh\n${program}\n`, { mode: 0o755 })
    const directory =
      program === undefined
        ? '/nowhere'
        : typeof program === 'string'
          ? root
          : dirname(await program('pages'))
    const { copyPages } = createPageProgram(directory, log, 0)
    const copied: number[] = []
    const counted: CopyPages = async (...given) => {
      copied.push(given[2].reduce((sum, { length }) => sum + length, 0))
      return copyPages(...given)
    }
    let memory = await begun()
    for (let generation = 3; generation < 12; generation += 1) {
      // All that follows has another place.
      memory = new Map([[1_000 - generation, page()], ...changed(memory)])
      const original = await save(generation, memory)
      const draft = await holder.begin(slotKey, generation)
      const options = { copyPages: counted }
      await expectSame(await applyDelta(encodeDelta(base(), original), base(), draft, options), original)
      await holder.prune(slotKey, keep)
    }
    expect(Math.min(...copied)).toBeGreaterThan(100 * 4096)
    expect(warnings).toHaveLength(warned)
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

  describe('where there is no room for another one beside it', () => {
    const bytes = 4096 * first.size
    beforeEach(() => {
      // Pages come and go.
      holder = storeIn('holder', 2 * bytes + 40 * 4096)
    })
    const over = (next: Stored) => holder.begin(slotKey, next.manifest.generation, { overSpare: true })

    it('D7.over-spare: is taken all the same, as often as there is a next one', async () => {
      let memory = await begun()
      for (let generation = 3; generation < 12; generation += 1) {
        const oldest = holder.open(slotKey, generation - 2)
        const file = oldest && (await fileOf(oldest))
        memory = changed(memory)
        const original = await save(generation, memory)
        await expect(holder.begin(slotKey, generation)).rejects.toMatchObject({ code: 'StoreFull' })
        const stored = await applyDelta(encodeDelta(base(), original), base(), await over(original))
        expect(await fileOf(stored)).toBe(file)
        await expectSame(stored, original)
        await holder.prune(slotKey, keep)
        expect(holder.list()).toHaveLength(keep)
      }
      const after = storeIn('holder')
      await after.load()
      expect(holder.bytes).toBe(after.bytes)
    })

    it('also for one that comes as a whole, and no more than the room is ever used', async () => {
      const third = await save(3, changed(await begun()))
      const oldest = holder.open(slotKey, 1)
      const file = oldest && (await fileOf(oldest))
      const stored = await applyDelta(encodeDelta(undefined, third), undefined, await over(third))
      expect(await fileOf(stored)).toBe(file)
      await expectSame(stored, third)
    })

    it('it is removed first if no file of the next one can take its place', async () => {
      await begun()
      const draft = await source.begin(slotKey, 3)
      await putFiles(draft.dir, { ...memoryImages(2, 2, changed(first)), 'core-2.img': random.bytes(300) })
      const original = await draft.commit(manifestOf(3))
      const next = await over(original)
      await openSpare(next, original.manifest.files)
      expect(await readdir(join(root, 'holder', slotName(slotKey), '1'))).not.toContain(image)
      await next.discard()
      await holder.removed()
      const again = await over(original)
      await expectSame(await applyDelta(encodeDelta(base(), original), base(), again), original)
    })

    it('it stays if there is no room all the same', async () => {
      await begun()
      const wanted = { expectedBytes: 3 * bytes, overSpare: true }
      await expect(holder.begin(slotKey, 3, wanted)).rejects.toMatchObject({ code: 'StoreFull' })
      expect(holder.list()).toHaveLength(keep)
      await holder.prune(slotKey, 0)
      expect(holder.bytes).toBe(0)
    })

    it('it stays with a draft that has not taken it, and goes if it was to go', async () => {
      const third = await save(3, changed(await begun()))
      const generations = () => holder.list().map(({ manifest }) => manifest.generation)
      const draft = await over(third)
      expect([draft.needsSpare, generations()]).toEqual([true, [2]])
      await draft.discard()
      expect(generations()).toEqual([2, 1])
      const refused = applyDelta(encodeDelta(base(), third), base(), await over(third), {
        accept: () => {
          throw new Error('another signer')
        },
      })
      await expect(refused).rejects.toThrow('another signer')
      expect(generations()).toEqual([2, 1])
      const again = await over(third)
      await holder.remove(slotKey)
      await again.discard()
      expect(generations()).toEqual([])
      await expect.poll(() => holder.bytes).toBe(0)
    })

    it('where its room is not enough it stays a generation, which may be removed for the next one', async () => {
      let asked = 0
      const options = { clock: systemClock, random: systemRandom }
      source = createGenerationStore({
        ...{ dir: join(root, 'other'), budget: 1 << 30, digestByPage: () => false },
        ...options,
      })
      holder = createGenerationStore({
        ...{ dir: join(root, 'small'), budget: 2 * bytes + 40 * 4096 },
        ...options,
        relieve: async () => {
          asked += 1
          await holder.drop(slotKey, 1, 1)
        },
      })
      await begun()
      // None of its files has digests by page.
      const draft = await holder.begin(slotKey, 3, { overSpare: true })
      expect([asked, draft.needsSpare]).toEqual([1, false])
    })

    it('one of its files shrinks before another one grows', async () => {
      const random = seededRandom(3)
      const pages = (count: number): Memory =>
        new Map(Array.from({ length: count }, (_, index) => [1_000 + index, random.bytes(4096)]))
      const both = async (generation: number, one: number, other: number) => {
        const draft = await source.begin(slotKey, generation)
        await putFiles(draft.dir, { ...memoryImages(1, 1, pages(one)), ...memoryImages(2, 2, pages(other)) })
        return draft.commit(manifestOf(generation))
      }
      await send(await both(1, 70, 230))
      await send(await both(2, 70, 230))
      const third = await both(3, 230, 70)
      const draft = await over(third)
      await openSpare(draft, third.manifest.files)
      const spare = join(root, 'holder', slotName(slotKey), '1')
      const sizes = ['pages-1.img', 'pages-2.img'].map(name => stat(join(spare, name)))
      expect((await Promise.all(sizes)).map(({ size }) => size / 4096)).toEqual([70, 70])
      await draft.discard()
      await holder.removed()
      const stored = await applyDelta(encodeDelta(base(), third), base(), await over(third))
      await expectSame(stored, third)
    })
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
