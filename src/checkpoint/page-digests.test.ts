/** Long because all cases are about the same stores and memories. */
import { createHash } from 'node:crypto'
import { mkdtemp, open, readdir, readFile, rm, stat, truncate, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import { zstdCompressSync } from 'node:zlib'
import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { buildProgram } from '../../native/build.ts'
import { systemClock } from '../kube/clock.ts'
import { silentLog } from '../kube/log.ts'
import { seededRandom, systemRandom } from '../kube/random.ts'
import { contentDigest, formatHeader, kinds } from './delta/records.ts'
import { applyDelta, encodeDelta } from './delta.ts'
import type { GenerationFile } from './manifest.ts'
import { createPageDigester } from './page-digests.ts'
import { type ComparePages, createPageProgram } from './page-program.ts'
import { createGenerationStore, type GenerationStore, type Stored, type StoreOptions } from './store.ts'
import { manifestOf, putFiles, slotKey } from './testing/generation.ts'
import { changedMemory, type Memory, memoryImages } from './testing/memory.ts'

let root: string
let stores = 0
beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'page-digests-'))
})
afterEach(() => rm(root, { recursive: true }))

function newStore(options: Pick<StoreOptions, 'digestByPage' | 'comparePages'> = {}): GenerationStore {
  stores += 1
  const dir = join(root, `store-${stores}`)
  return createGenerationStore({ dir, budget: 1 << 30, clock: systemClock, random: systemRandom, ...options })
}

async function add(store: GenerationStore, generation: number, memory: Memory): Promise<Stored> {
  const draft = await store.begin(slotKey, generation)
  await putFiles(draft.dir, memoryImages(1, 1, memory))
  return draft.commit(manifestOf(generation))
}

/** The digest by its definition. */
const digestOf = (content: Uint8Array): string => {
  const whole = createHash('sha256')
  for (let at = 0; at < content.length; at += 4096)
    whole.update(
      createHash('sha256')
        .update(content.subarray(at, at + 4096))
        .digest(),
    )
  return whole.digest('hex')
}

const random = seededRandom(7)
const page = () => random.bytes(4096)
const memoryOf = (pages: number, first = 1000): Map<number, Uint8Array> =>
  new Map(Array.from({ length: pages }, (_, index) => [first + index, page()]))
const imageOf = ({ manifest }: Stored): GenerationFile | undefined =>
  manifest.files.find(({ path }) => path === 'pages-1.img')

it('the digest of a file does not depend on the pieces in which its bytes come', () => {
  const content = Buffer.from(random.bytes(30_000))
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 1, max: 9000 }), { minLength: 4, maxLength: 30 }), sizes => {
      const digester = createPageDigester(content.length)
      let at = 0
      for (const size of [...sizes, content.length]) {
        digester.update(content.subarray(at, at + size))
        at += size
      }
      expect(digester.finish().sha256).toBe(digestOf(content))
    }),
  )
})

const changed = (memory: Memory, share: number) => changedMemory(random, memory, share)

describe('D7.digests: a generation with digests by page', () => {
  it('has the same digests, whatever is known of the one before', async () => {
    for (const share of [0, 0.01, 0.3, 1]) {
      const before = memoryOf(900)
      const after = changed(before, share)
      const [knowing, fresh] = [newStore(), newStore()]
      const first = await add(knowing, 1, before)
      const second = await add(knowing, 2, after)
      expect(second.manifest.files).toEqual((await add(fresh, 2, after)).manifest.files)
      for (const stored of [first, second])
        expect(imageOf(stored)).toMatchObject({
          byPage: true,
          sha256: digestOf(await readFile(join(stored.dir, 'pages-1.img'))),
        })
    }
  })

  it('has the same digests, whichever program compares its pages', async () => {
    const program = createPageProgram(dirname(await buildProgram('pages')), silentLog, 0)
    const answers: (Buffer | undefined)[] = []
    const comparePages: ComparePages = async (...given) => {
      const same = await program.comparePages(...given)
      answers.push(same)
      return same
    }
    for (const share of [0, 0.01, 0.3, 1]) {
      const before = memoryOf(900)
      const after = changed(before, share)
      const [told, fresh] = [newStore({ comparePages }), newStore()]
      await add(told, 1, before)
      const second = await add(told, 2, after)
      expect(second.manifest.files).toEqual((await add(fresh, 2, after)).manifest.files)
      // The store has asked the program.
      const pages = [...after.keys()].filter(address => before.has(address))
      const same = pages.filter(address => before.get(address) === after.get(address))
      expect(answers.at(-1)?.length).toBe(pages.length)
      expect(answers.at(-1)?.filter(byte => byte === 1)).toHaveLength(same.length)
    }
  })

  const programOf = async (script: string) => {
    await writeFile(join(root, 'pages'), `#!/bin/sh\n${script}\n`, { mode: 0o755 })
    return root
  }

  it.each([
    ['is missing', undefined, 1],
    ['fails', 'echo why >&2; exit 1', 2],
    ['answers too little', 'printf x', 2],
    ['answers too much', 'head -c 100000 /dev/zero', 2],
  ])('is made if the program that compares pages %s', async (_, script, expected) => {
    const programs = script === undefined ? '/nowhere' : await programOf(script)
    const warnings: unknown[] = []
    const log = { warn: (...told: unknown[]) => void warnings.push(told) }
    const [told, fresh] = [
      newStore({ comparePages: createPageProgram(programs, log, 0).comparePages }),
      newStore(),
    ]
    let memory = memoryOf(300)
    await add(told, 1, memory)
    for (const generation of [2, 3]) {
      memory = changed(memory, 0.1)
      const { manifest } = await add(told, generation, memory)
      expect(manifest.files).toEqual((await add(fresh, generation, memory)).manifest.files)
    }
    expect(warnings).toHaveLength(expected)
  })

  it('is not made if its maker gives up while pages are compared, and the program ends', async () => {
    const end = new AbortController()
    const pidFile = join(root, 'pid')
    const programs = await programOf(`echo $$ > ${pidFile}; exec sleep 600`)
    const store = newStore({ comparePages: createPageProgram(programs, silentLog, 0).comparePages })
    const before = memoryOf(300)
    await add(store, 1, before)
    const draft = await store.begin(slotKey, 2)
    await putFiles(draft.dir, memoryImages(1, 1, changed(before, 0.1)))
    const committed = draft.commit(manifestOf(2), { signal: end.signal })
    committed.catch(() => undefined)
    const pid = await vi.waitFor(async () => {
      const text = await readFile(pidFile, 'utf8')
      expect(text).toMatch(/^\d+\n$/)
      return Number(text)
    })
    end.abort(new Error('given up'))
    await expect(committed).rejects.toThrow('given up')
    expect(store.latest(slotKey)?.manifest.generation).toBe(1)
    await vi.waitFor(() => expect(() => process.kill(pid, 0)).toThrow('ESRCH'))
  })

  it('is made where the digests of the one before are missing, cut off or wrong', async () => {
    const memory = memoryOf(300)
    const damage = [
      (file: string) => rm(file),
      (file: string) => truncate(file, 32 * 299),
      (file: string) => writeFile(file, random.bytes(32 * 300)),
    ]
    for (const hurt of damage) {
      const [source, holder] = [newStore(), newStore()]
      const first = await add(source, 1, memory)
      const theirs = await applyDelta(
        encodeDelta(undefined, first),
        undefined,
        await holder.begin(slotKey, 1),
      )
      // An agent that starts has them on disk only.
      for (const { held } of [first, theirs]) held?.forget()
      await hurt(join(first.dir, 'page-digests'))
      await hurt(join(theirs.dir, 'page-digests'))
      const second = await add(source, 2, changed(memory, 0.1))
      const copy = await applyDelta(encodeDelta(first, second), theirs, await holder.begin(slotKey, 2))
      expect(copy.manifest).toEqual(second.manifest)
      expect(imageOf(copy)?.sha256).toBe(digestOf(await readFile(join(copy.dir, 'pages-1.img'))))
    }
  })

  it('does not trust the pages of the one before if they are fewer than they were', async () => {
    const store = newStore()
    const memory = memoryOf(300)
    const first = await add(store, 1, memory)
    await truncate(join(first.dir, 'pages-1.img'), 4096 * 100)
    const second = await add(store, 2, memory)
    expect(imageOf(second)?.sha256).toBe(digestOf(await readFile(join(second.dir, 'pages-1.img'))))
  })

  it('travels as its changes, and the holder keeps the digests for the next one', async () => {
    const [source, holder] = [newStore(), newStore()]
    let base: Stored | undefined
    let theirs: Stored | undefined
    let memory = memoryOf(2000)
    for (let generation = 1; generation <= 4; generation += 1) {
      const next = await add(source, generation, memory)
      const delta = await buffer(encodeDelta(base, next))
      if (generation > 1) expect(delta.length).toBeLessThan(60 * 4096)
      theirs = await applyDelta(inPieces(delta), theirs, await holder.begin(slotKey, generation))
      base = next
      const [ours, copy] = await Promise.all(
        [next, theirs].map(({ dir }) => readFile(join(dir, 'page-digests'))),
      )
      expect(ours?.equals(copy ?? Buffer.alloc(0))).toBe(true)
      memory = changed(memory, 0.01)
    }
    // A node that starts again takes over all of it.
    const restarted = createGenerationStore({
      ...{ dir: join(theirs?.dir ?? '', '../..'), budget: 1 << 30, clock: systemClock, random: systemRandom },
    })
    expect(await restarted.load()).toEqual([])
    expect(restarted.latest(slotKey)?.manifest).toEqual(theirs?.manifest)
  })

  it('is refused if a peer copies from where no page begins, so that known digests are of other bytes', async () => {
    const [source, holder] = [newStore(), newStore()]
    const first = await add(source, 1, memoryOf(300))
    const theirs = await applyDelta(encodeDelta(undefined, first), undefined, await holder.begin(slotKey, 1))
    const files = first.manifest.files.filter(({ path }) => path === 'pages-1.img')
    const bytes = files.reduce((sum, { size }) => sum + size, 0)
    const index = first.manifest.files.findIndex(({ path }) => path === 'pages-1.img')
    // A copy of each page from one byte further on, but where that would reach beyond what is read at once.
    const records = Array.from({ length: 300 }, (_, page) => {
      const copy = Buffer.alloc(17)
      copy.writeUInt8(kinds.copy)
      copy.writeUInt32LE(index, 1)
      copy.writeUIntLE(page * 4096 + (page % 128 === 127 || page === 299 ? 0 : 1), 5, 6)
      copy.writeUIntLE(4096, 11, 6)
      return copy
    })
    const base = { epoch: 1, generation: 1, digest: contentDigest(first.manifest) }
    const header = formatHeader({ manifest: { ...first.manifest, generation: 2, files, bytes }, base })
    const ends = Buffer.from([kinds.endOfFile, kinds.end])
    const stream = zstdCompressSync(Buffer.concat([header, ...records, ends]))
    await expect(applyDelta(inPieces(stream), theirs, await holder.begin(slotKey, 2))).rejects.toThrow(
      'pages-1.img differs from its manifest',
    )
  })

  it('has the same digest when a read ends within a page', async () => {
    const memory = memoryOf(300)
    const store = newStore()
    await add(store, 1, memory)
    const file = await open(join(root, 'probe'), 'w')
    const prototype = Object.getPrototypeOf(file)
    await file.close()
    const { read } = prototype
    let isCut = false
    const cut = vi.spyOn(prototype, 'read').mockImplementation(async function (
      this: unknown,
      ...[buffer, offset, length, position]: readonly unknown[]
    ) {
      const result = await read.call(this, buffer, offset, length, position)
      if (isCut || position !== 0 || result.bytesRead < 500_000) return result
      isCut = true
      return { ...result, bytesRead: 1000 }
    })
    try {
      const second = await add(store, 2, new Map([...memory, [1200, page()]]))
      const image = imageOf(second)
      expect(isCut).toBe(true)
      cut.mockRestore()
      expect(image?.sha256).toBe(digestOf(await readFile(join(second.dir, 'pages-1.img'))))
    } finally {
      cut.mockRestore()
    }
  })

  it('is refused if its pages are not those of the manifest', async () => {
    const [source, holder] = [newStore(), newStore()]
    const first = await add(source, 1, memoryOf(300))
    const theirs = await applyDelta(encodeDelta(undefined, first), undefined, await holder.begin(slotKey, 1))
    const second = await add(source, 2, memoryOf(300))
    await writeFile(join(second.dir, 'pages-1.img'), Buffer.concat(Array.from({ length: 300 }, page)))
    await expect(
      applyDelta(encodeDelta(first, second), theirs, await holder.begin(slotKey, 2)),
    ).rejects.toThrow('pages-1.img differs from its manifest')
  })

  it('counts its digests in the budget', async () => {
    const store = newStore()
    const { dir } = await add(store, 1, memoryOf(3000))
    const sizes = await Promise.all((await readdir(dir)).map(name => stat(join(dir, name))))
    const taken = sizes.reduce((sum, { size }) => sum + Math.ceil(size / 4096) * 4096, 0)
    expect(store.bytes).toBe(taken)
  })

  it('is not made for small images, nor while agents of the version before read from this node', async () => {
    const small = await add(newStore(), 1, memoryOf(63))
    expect(imageOf(small)).not.toHaveProperty('byPage')
    let byPage = true
    const store = newStore({ digestByPage: () => byPage })
    const first = await add(store, 1, memoryOf(64))
    byPage = false
    const second = await add(store, 2, memoryOf(64))
    expect([imageOf(first)?.byPage, imageOf(second)?.byPage]).toEqual([true, undefined])
    const content = await readFile(join(second.dir, 'pages-1.img'))
    expect(imageOf(second)?.sha256).toBe(createHash('sha256').update(content).digest('hex'))
    const holder = newStore()
    for (const [base, next] of [
      [undefined, first],
      [first, second],
    ] as const) {
      const draft = await holder.begin(slotKey, next.manifest.generation)
      const copy = await applyDelta(encodeDelta(base, next), holder.latest(slotKey), draft)
      expect(copy.manifest).toEqual(next.manifest)
    }
  })
})

async function* inPieces(bytes: Buffer): AsyncGenerator<Buffer> {
  for (let at = 0; at < bytes.length; at += 10_000) yield bytes.subarray(at, at + 10_000)
}
