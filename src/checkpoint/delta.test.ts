// Long because every case needs the same pair of generations.
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import { setImmediate } from 'node:timers/promises'
import { zstdCompressSync, zstdDecompressSync } from 'node:zlib'
import fc from 'fast-check'
import { pack } from 'tar-stream'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { systemClock } from '../kube/clock.ts'
import { type Random, seededRandom, systemRandom } from '../kube/random.ts'
import { applyDelta, encodeDelta } from './delta.ts'
import { isCheckpointError } from './errors.ts'
import { slotName } from './manifest.ts'
import { createGenerationStore, type GenerationStore, type Stored } from './store.ts'
import { manifestOf, putFiles, slotKey } from './testing/generation.ts'
import { type Memory, memoryImages } from './testing/memory.ts'

let root: string
let source: GenerationStore
let holder: GenerationStore

const storeIn = (dir: string) =>
  createGenerationStore({ dir: join(root, dir), budget: 1 << 30, clock: systemClock, random: systemRandom })

beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'delta-'))
  source = storeIn('source')
  holder = storeIn('holder')
})
afterEach(() => rm(root, { recursive: true }))

type Files = Readonly<Record<string, Uint8Array | string>>

async function add(store: GenerationStore, generation: number, files: Files): Promise<Stored> {
  const draft = await store.begin(slotKey, generation)
  await putFiles(draft.dir, files)
  return draft.commit(manifestOf(generation))
}

async function collect(stream: AsyncIterable<Buffer>): Promise<Buffer> {
  const chunks: Buffer[] = []
  for await (const chunk of stream) chunks.push(chunk)
  return Buffer.concat(chunks)
}

async function* inPieces(bytes: Buffer, size: number): AsyncGenerator<Buffer> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size)
}

async function expectSame(copy: Stored, original: Stored) {
  expect(copy.manifest).toEqual(original.manifest)
  for (const { path } of original.manifest.files) {
    const [a, b] = await Promise.all([readFile(join(copy.dir, path)), readFile(join(original.dir, path))])
    expect(a.equals(b), path).toBe(true)
  }
}

async function archive(files: ReadonlyMap<string, Uint8Array>): Promise<Buffer> {
  const tar = pack()
  for (const [name, content] of files) tar.entry({ name, mtime: new Date(0) }, Buffer.from(content))
  tar.finalize()
  return buffer(tar)
}

const drafts = async () =>
  (await readdir(join(root, 'holder', slotName(slotKey)))).filter(name => name.startsWith('.'))

const contentsOf = ({ manifest }: Stored) =>
  manifest.files.map(({ sha256, size, byPage }) => ({ sha256, size, byPage }))

const page = (random: Random) => random.bytes(4096)
const container = (files: Files): Files =>
  Object.fromEntries(Object.entries(files).map(([name, content]) => [`containers/app/criu/${name}`, content]))

function newMemory(random: Random, pages: number): Map<number, Uint8Array> {
  const memory = new Map<number, Uint8Array>()
  for (let address = 0x7f00_0000_0; memory.size < pages; address += random.next() < 0.05 ? 17 : 1)
    memory.set(address, page(random))
  return memory
}

/** Changes, adds and removes this share of the pages each. */
function changed(random: Random, memory: Memory, share: number): Memory {
  const next = new Map(memory)
  for (const address of memory.keys()) {
    const chance = random.next()
    if (chance < share) next.set(address, page(random))
    else if (chance < 2 * share) next.delete(address)
    else if (chance < 3 * share) next.set(address + 100_000, page(random))
  }
  return next
}

test('without a base everything travels', async () => {
  const random = seededRandom(1)
  const next = await add(source, 1, {
    ...container(memoryImages(1, 1, newMemory(random, 300))),
    'volumes/cache.tar': random.bytes(700_000),
    'shm.tar': '',
  })
  const stored = await applyDelta(encodeDelta(undefined, next), undefined, await holder.begin(slotKey, 1))
  await expectSame(stored, next)
  expect(holder.latest(slotKey)).toBe(stored)
})

test('D7.delta: only changed pages travel, also when others have moved in the image', async () => {
  const random = seededRandom(2)
  const before = newMemory(random, 4000)
  const after = new Map(changed(random, before, 0.005))
  // A page at the front moves all pages after it, and tasks may swap the numbers of their images.
  after.set(1, page(random))
  const small = newMemory(random, 100)
  const first = { ...memoryImages(1, 1, before), ...memoryImages(9, 2, small) }
  const second = { ...memoryImages(1, 2, after), ...memoryImages(9, 1, small) }
  const base = await add(source, 1, container(first))
  const next = await add(source, 2, container(second))
  const theirs = await applyDelta(encodeDelta(undefined, base), undefined, await holder.begin(slotKey, 1))

  const delta = await collect(encodeDelta(base, next))

  const news = [...after].filter(([address, content]) => before.get(address) !== content).length * 4096
  expect(delta.length).toBeGreaterThan(news)
  expect(delta.length).toBeLessThan(news + 0.01 * 4000 * 4096)
  await expectSame(await applyDelta(inPieces(delta, 10_000), theirs, await holder.begin(slotKey, 2)), next)
})

test('a file that is the same as one of the base costs nothing, whatever its name', async () => {
  const bytes = seededRandom(3).bytes(2_000_000)
  const base = await add(source, 1, { 'volumes/a.tar': bytes })
  const next = await add(source, 2, { 'volumes/b.tar': bytes })
  const delta = await collect(encodeDelta(base, next))
  expect(delta.length).toBeLessThan(2_000)
  await expectSame(await applyDelta(inPieces(delta, 100), base, await holder.begin(slotKey, 2)), next)
})

test('files of an archive are found again when others before them have grown, come or gone', async () => {
  const random = seededRandom(9)
  const content = new Map(
    Array.from({ length: 60 }, (_, index) => [`dir/file-${index}`, random.bytes(30_000 + index)]),
  )
  const before = await archive(content)
  const log = Buffer.from(content.get('dir/file-3') ?? [])
  content.set('dir/file-3', Buffer.concat([log, random.bytes(700)]))
  content.delete('dir/file-20')
  const after = await archive(new Map([['dir/new', random.bytes(100)], ...content]))
  const base = await add(source, 1, { 'volumes/data.tar': before })
  const next = await add(source, 2, { 'volumes/data.tar': after })
  const delta = await collect(encodeDelta(base, next))
  expect(delta.length).toBeLessThan(12_000)
  await add(holder, 1, { 'volumes/data.tar': before })
  const copy = await applyDelta(inPieces(delta, 999), holder.open(slotKey, 1), await holder.begin(slotKey, 2))
  await expectSame(copy, next)
})

test('an archive that is none, or is cut off, travels all the same', async () => {
  const random = seededRandom(10)
  const good = await archive(
    new Map([
      ['a', random.bytes(400_000)],
      ['b', random.bytes(400_000)],
    ]),
  )
  const bad = Buffer.concat([good.subarray(0, 600_000), random.bytes(300)])
  const binary = Buffer.from(good)
  binary.writeUInt8(0x80, 124)
  let generation = 0
  for (const [from, to] of [
    [good, bad],
    [bad, good],
    [good, binary],
    [Buffer.alloc(0), good],
  ] as const) {
    generation += 2
    const base = await add(source, generation, { 'volumes/data.tar': from })
    const next = await add(source, generation + 1, { 'volumes/data.tar': to })
    const draft = await holder.begin(slotKey, generation + 1)
    await expectSame(await applyDelta(encodeDelta(base, next), base, draft), next)
  }
})

test('whatever two generations hold, the second comes back from the first and the difference', async () => {
  const change = fc.record({
    seed: fc.integer(),
    pages: fc.integer({ min: 1, max: 400 }),
    share: fc.double({ min: 0, max: 0.5, noNaN: true }),
    shuffle: fc.boolean(),
    pagesId: fc.integer({ min: 1, max: 3 }),
    tail: fc.nat(5000),
    volume: fc.nat(600_000),
    grown: fc.integer({ min: -300_000, max: 300_000 }),
    pieces: fc.integer({ min: 1000, max: 600_000 }),
    damagedMap: fc.boolean(),
  })
  let generation = 0
  await fc.assert(
    fc.asyncProperty(change, async it => {
      const random = seededRandom(it.seed)
      const before = newMemory(random, it.pages)
      let after = changed(random, before, it.share)
      if (it.shuffle) {
        const contents = [...after.values()].sort(() => random.next() - 0.5)
        after = new Map([...after.keys()].map((address, index) => [address, contents[index] ?? page(random)]))
      }
      const images = memoryImages(1, it.pagesId, after)
      if (it.damagedMap) images['pagemap-1.img'] = Buffer.from('no map')
      const volume = Buffer.from(random.bytes(it.volume))
      generation += 2
      const base = await add(source, generation, {
        ...container(memoryImages(1, 1, before)),
        'volumes/cache.tar': volume,
      })
      const next = await add(source, generation + 1, {
        ...container({ ...images, 'tcp-stream.img': random.bytes(it.tail) }),
        'volumes/cache.tar': Buffer.concat([volume, random.bytes(Math.max(it.grown, 0))]).subarray(
          Math.max(-it.grown, 0),
        ),
      })
      const theirs = await applyDelta(
        encodeDelta(undefined, base),
        undefined,
        await holder.begin(slotKey, generation),
      )
      const delta = await collect(encodeDelta(base, next))
      const copy = await applyDelta(
        inPieces(delta, it.pieces),
        theirs,
        await holder.begin(slotKey, generation + 1),
      )
      await expectSame(copy, next)
      await source.prune(slotKey, 1)
      await holder.prune(slotKey, 1)
    }),
    { numRuns: 40 },
  )
}, 120_000)

test('a receiver without the very same base says so', async () => {
  const random = seededRandom(4)
  const base = await add(source, 1, { 'pages-1.img': random.bytes(400_000) })
  const next = await add(source, 2, { 'pages-1.img': random.bytes(400_000) })
  const other = await add(holder, 1, { 'pages-1.img': random.bytes(400_000) })
  for (const wrong of [undefined, other])
    await expect(
      applyDelta(encodeDelta(base, next), wrong, await holder.begin(slotKey, 2)),
    ).rejects.toMatchObject({ code: 'DeltaBaseMissing' })
  expect(await drafts()).toEqual([])
})

test('a delta of another slot or generation is not taken', async () => {
  const next = await add(source, 2, { a: 'x' })
  for (const [slot, generation] of [
    [slotKey, 3],
    [{ ...slotKey, incarnation: 'ffffffff' }, 2],
  ] as const)
    await expect(
      applyDelta(encodeDelta(undefined, next), undefined, await holder.begin(slot, generation)),
    ).rejects.toMatchObject({ code: 'Corrupt' })
})

test('D7.verified: damage anywhere is noticed, and nothing is left', async () => {
  const random = seededRandom(5)
  const before = newMemory(random, 200)
  const base = await add(source, 1, container(memoryImages(1, 1, before)))
  const next = await add(source, 2, container(memoryImages(1, 1, changed(random, before, 0.1))))
  const theirs = await applyDelta(encodeDelta(undefined, base), undefined, await holder.begin(slotKey, 1))
  const packed = await collect(encodeDelta(base, next))
  const plain = zstdDecompressSync(packed)
  const damage = fc.record({
    inside: fc.boolean(),
    at: fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
    bytes: fc.uint8Array({ minLength: 1, maxLength: 8 }),
    kind: fc.constantFrom('overwrite', 'cut', 'insert'),
  })
  await fc.assert(
    fc.asyncProperty(damage, async ({ inside, at, bytes, kind }) => {
      const good = inside ? plain : packed
      const index = Math.floor(at * good.length)
      const rest = good.subarray(kind === 'overwrite' ? index + bytes.length : index)
      const bad =
        kind === 'cut' ? good.subarray(0, index) : Buffer.concat([good.subarray(0, index), bytes, rest])
      fc.pre(!bad.equals(good))
      const stream = inPieces(inside ? zstdCompressSync(bad) : bad, 50_000)
      const target = storeIn('target')
      const draft = await target.begin(slotKey, 2)
      const outcome = await applyDelta(stream, theirs, draft).then(
        stored => ({ stored }),
        (error: unknown) => ({ error }),
      )
      if ('stored' in outcome) {
        // No digest covers the rest of the manifest, for example the name of a node or of a file: its signature does. The memory must be unchanged.
        await target.remove(slotKey)
        expect(contentsOf(outcome.stored)).toEqual(contentsOf(next))
        return
      }
      expect(
        isCheckpointError(outcome.error, 'Corrupt', 'BadManifest', 'DeltaBaseMissing', 'StoreFull'),
        String((outcome.error as Error).stack),
      ).toBe(true)
      expect(await readdir(join(root, 'target', slotName(slotKey)))).toEqual([])
    }),
    {
      numRuns: 200,
      // The name of a file.
      examples: [
        [
          {
            inside: true,
            at: 0.005943746600278779,
            bytes: Uint8Array.of(93, 70, 243, 196, 236, 61),
            kind: 'overwrite',
          },
        ],
      ],
    },
  )
}, 120_000)

test('a base that is removed while it is read is a base that is missing', async () => {
  const random = seededRandom(11)
  const before = random.bytes(2_000_000)
  const base = await add(source, 1, { 'pages-1.img': before })
  const next = await add(source, 2, { 'pages-1.img': before, 'more.img': 'x' })
  const theirs = await add(holder, 1, { 'pages-1.img': before })
  const delta = await collect(encodeDelta(base, next))
  await holder.prune(slotKey, 0)
  await expect(
    applyDelta(inPieces(delta, 1000), theirs, await holder.begin(slotKey, 2)),
  ).rejects.toMatchObject({ code: 'DeltaBaseMissing' })
})

test('the failure of the stream itself is told as it is', async () => {
  const next = await add(source, 1, { 'pages-1.img': seededRandom(6).bytes(3_000_000) })
  const failure = new Error('connection reset')
  const broken = async function* () {
    for await (const chunk of encodeDelta(undefined, next)) {
      yield chunk.subarray(0, 1000)
      throw failure
    }
  }
  await expect(applyDelta(broken(), undefined, await holder.begin(slotKey, 1))).rejects.toBe(failure)
  expect(await drafts()).toEqual([])
})

test('an abort ends both sides at once, even while the stream hangs', async () => {
  const next = await add(source, 1, { 'pages-1.img': seededRandom(7).bytes(3_000_000) })
  const reason = new Error('not wanted any more')
  const receiving = new AbortController()
  const hanging = Promise.withResolvers<void>()
  const hung = Promise.withResolvers<void>()
  const stalled = async function* () {
    for await (const chunk of encodeDelta(undefined, next)) {
      yield chunk.subarray(0, 1000)
      hanging.resolve()
      await hung.promise
    }
  }
  const draft = await holder.begin(slotKey, 1)
  const applying = applyDelta(stalled(), undefined, draft, { signal: receiving.signal })
  await hanging.promise
  receiving.abort(reason)
  await expect(applying).rejects.toBe(reason)
  expect(await drafts()).toEqual([])
  hung.resolve()

  const sending = new AbortController()
  const reading = async () => {
    for await (const _ of encodeDelta(undefined, next, { signal: sending.signal })) sending.abort(reason)
  }
  await expect(reading()).rejects.toBe(reason)
})

test('a sender does not run ahead of its reader, and lets go of its files when the reader leaves', async () => {
  const descriptors = async () => (await readdir('/proc/self/fd')).length
  const next = await add(source, 1, { 'pages-1.img': seededRandom(8).bytes(30_000_000) })
  const before = await descriptors()
  const heap = process.memoryUsage().arrayBuffers
  const stream = encodeDelta(undefined, next)
  const first = await stream.next()
  expect(first.done).toBe(false)
  for (let turn = 0; turn < 200; turn += 1) await setImmediate()
  expect(process.memoryUsage().arrayBuffers - heap).toBeLessThan(10_000_000)
  await stream.return(undefined)
  await expect.poll(descriptors).toBeLessThanOrEqual(before)
})
