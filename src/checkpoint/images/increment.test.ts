import { mkdtemp, readFile, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { systemClock } from '../../kube/clock.ts'
import { seededRandom, systemRandom } from '../../kube/random.ts'
import { openSpare } from '../delta/patch.ts'
import { digestsOfPath, readPageDigests } from '../page-digests.ts'
import { createGenerationStore, type GenerationStore, type Stored } from '../store.ts'
import { manifestOf, putFiles, slotKey } from '../testing/generation.ts'
import { changedMemory, type Memory, memoryImages } from '../testing/memory.ts'
import { completeIncrement } from './increment.ts'
import { parsePagemap } from './pagemap.ts'

const signal = new AbortController().signal
const random = seededRandom(5)
const page = () => random.bytes(4096)

let root: string
let stores = 0
beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'increment-'))
})
afterEach(() => rm(root, { recursive: true }))

function newStore(digestByPage = () => true): GenerationStore {
  stores += 1
  const dir = join(root, `store-${stores}`)
  return createGenerationStore({
    dir,
    budget: 1 << 30,
    clock: systemClock,
    random: systemRandom,
    digestByPage,
  })
}

const changed = (memory: Memory) => changedMemory(random, memory, 0.02)

async function dump(store: GenerationStore, generation: number, memory: Memory): Promise<Stored> {
  const draft = await store.begin(slotKey, generation)
  await putFiles(draft.dir, memoryImages(1, 1, memory))
  const stored = await draft.commit(manifestOf(generation))
  await store.prune(slotKey, 2)
  return stored
}

/** Saves what has changed since, and completes it. */
async function increment(store: GenerationStore, base: Stored, memory: Memory, before: Memory) {
  const generation = base.manifest.generation + 1
  const draft = await store.begin(slotKey, generation)
  await putFiles(draft.dir, memoryImages(1, 1, memory, before))
  const known = await readPageDigests(base)
  const spare = await openSpare(draft)
  const { digests, ...counts } = await completeIncrement(
    draft.dir,
    {
      directory: base.dir,
      digestsOf: pages => digestsOfPath(known, base.manifest, pages),
      takeSpare: async (pages, to) => spare?.take({ path: pages, byPage: true }, to),
    },
    [],
    signal,
  )
  const stored = await draft.commit(manifestOf(generation), { pageDigests: digests })
  await store.prune(slotKey, 2)
  return { stored, counts, digests }
}

/** The same memory, saved as a whole. */
async function expectWhole(stored: Stored, memory: Memory) {
  const whole = await dump(newStore(), stored.manifest.generation, memory)
  const ofPages = ({ manifest }: Stored) => manifest.files.filter(({ path }) => path === 'pages-1.img')
  expect(ofPages(stored)).toEqual(ofPages(whole))
  const read = ({ dir }: Stored, name: string) => readFile(join(dir, name))
  expect((await read(stored, 'pages-1.img')).equals(await read(whole, 'pages-1.img'))).toBe(true)
  const name = 'pagemap-1.img'
  const runs = async (each: Stored) => (await parsePagemap(name, await read(each, name))).runs
  expect(await runs(stored)).toEqual(await runs(whole))
  expect(await readPageDigests(stored)).toEqual(await readPageDigests(whole))
}

const fileOf = async ({ dir }: Stored): Promise<number> => (await stat(join(dir, 'pages-1.img'))).ino

it('D7.patch: increments are written over the dump before the last one, and are what a full dump would be', async () => {
  const store = newStore()
  let memory: Memory = new Map(Array.from({ length: 400 }, (_, index) => [100_000 + index, page()]))
  await dump(store, 1, memory)
  let last = await dump(store, 2, memory)
  for (let generation = 3; generation < 20; generation += 1) {
    const before = memory
    memory = changed(memory)
    const spare = store.open(slotKey, generation - 2)
    expect(spare).toBeDefined()
    const file = spare && (await fileOf(spare))
    const { stored, counts, digests } = await increment(store, last, memory, before)
    expect(digests.size).toBe(1)
    expect(await fileOf(stored)).toBe(file)
    const written = [...memory].filter(([address, content]) => before.get(address) !== content).length
    expect(counts).toEqual({ written, unchanged: memory.size - written, wrong: 0 })
    await expectWhole(stored, memory)
    await expectWhole(last, before)
    last = stored
  }
})

it('D7.patch: nothing is written over without digests of pages', async () => {
  const store = newStore(() => false)
  const first: Memory = new Map(Array.from({ length: 400 }, (_, index) => [100_000 + index, page()]))
  const one = await dump(store, 1, first)
  const two = await dump(store, 2, first)
  const files = [await fileOf(one), await fileOf(two)]
  const second = changed(first)
  const { stored, digests } = await increment(store, two, second, first)
  expect(digests.size).toBe(0)
  expect(files).not.toContain(await fileOf(stored))
  const name = 'pages-1.img'
  const whole = memoryImages(1, 1, second)[name]
  expect(whole?.equals(await readFile(join(stored.dir, name)))).toBe(true)
  expect(stored.manifest.files.some(({ byPage }) => byPage)).toBe(false)
})
