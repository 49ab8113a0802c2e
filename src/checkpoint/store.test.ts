import { mkdtemp, readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { createFakeClock } from '../kube/clock.ts'
import { seededRandom } from '../kube/random.ts'
import { parseManifest, slotName } from './manifest.ts'
import { createGenerationStore, type GenerationStore } from './store.ts'
import { manifestOf, putFiles, slotKey } from './testing/generation.ts'

let root: string
const clock = createFakeClock()
const page = 'x'.repeat(4096)

beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'generations-'))
})
afterEach(() => rm(root, { recursive: true }))

const newStore = (options: { budget?: number; share?: number; uptime?: () => number } = {}) =>
  createGenerationStore({ dir: root, budget: 1 << 20, clock, random: seededRandom(1), ...options })

async function add(store: GenerationStore, generation: number, { epoch = 1, content = page } = {}) {
  const draft = await store.begin(slotKey, generation)
  await putFiles(draft.dir, { 'containers/app/criu/pages-1.img': content, 'shm.tar': 'shm' })
  return draft.commit(manifestOf(generation, { epoch }))
}

const onDisk = async () => (await readdir(root, { recursive: true })).sort()

test('D10.private: a draft becomes a generation with its digests, private to root', async () => {
  const store = newStore()
  const draft = await store.begin(slotKey, 1)
  await putFiles(draft.dir, { 'containers/app/criu/pages-1.img': page, 'shm.tar': 'shm' })
  expect(store.list()).toEqual([])
  await clock.advance(250)

  const stored = await draft.commit(manifestOf(1))

  expect(stored.pipelineMs).toBe(250)
  expect(stored.completedAt).toBe(clock.monotonic())
  expect(stored.manifest.bytes).toBe(4099)
  expect(stored.manifest.files).toEqual([
    {
      path: 'containers/app/criu/pages-1.img',
      size: 4096,
      sha256: 'a2e659dacb4691e887ac0139f8893d04764ee197d70fb73d3190d56113d18e3e',
    },
    { path: 'shm.tar', size: 3, sha256: 'feecd047de5b7d301b1f66d8cb6e4130ab446c038e3897afe78f5116804069c0' },
  ])
  expect(stored.dir).toBe(join(root, 'shop.carts.0.0a1b2c3d', '1'))
  expect(store.latest(slotKey)).toBe(stored)
  expect((await stat(join(stored.dir, 'containers/app'))).mode & 0o777).toBe(0o700)
  expect((await stat(join(stored.dir, 'shm.tar'))).mode & 0o777).toBe(0o600)
  expect((await stat(join(stored.dir, 'manifest.json'))).mode & 0o777).toBe(0o600)
  expect(parseManifest(await readFile(join(stored.dir, 'manifest.json'), 'utf8'))).toEqual(stored.manifest)
})

test('the next process finds what is complete, with its age, and nothing else', async () => {
  let uptime = 5_000
  const first = newStore({ uptime: () => uptime })
  const draft = await first.begin(slotKey, 1)
  await putFiles(draft.dir, { 'a.img': page })
  await clock.advance(100)
  const stored = await draft.commit(manifestOf(1))
  await add(first, 2)
  const unfinished = await first.begin(slotKey, 3)
  await putFiles(unfinished.dir, { 'a.img': page })
  await rm(join(first.open(slotKey, 2)?.dir ?? '', 'shm.tar'))

  uptime += 700
  const second = newStore({ uptime: () => uptime })
  const dropped = await second.load()

  expect(dropped.map(({ name }) => name.replace(/[0-9a-f]{16}$/, 'X')).sort()).toEqual([
    'shop.carts.0.0a1b2c3d/.draft-X',
    'shop.carts.0.0a1b2c3d/2',
  ])
  const { held: _, ...known } = stored
  expect(second.list()).toEqual([{ ...known, completedAt: clock.monotonic() - 700 }])
  expect(second.bytes).toBe(3 * 4096)
  expect(await readdir(join(root, slotName(slotKey)))).toEqual(['1'])
})

test('after a restart of the machine the age comes from the wall clock', async () => {
  await add(newStore({ uptime: () => 1_000_000 }), 1)
  const store = newStore({ uptime: () => 5_000 })
  await store.load()
  const stored = store.latest(slotKey)
  expect(stored?.completedAt).toBe(clock.monotonic())
  expect(stored?.pipelineMs).toBe(clock.now() - Date.UTC(2030, 0, 1))
})

test('the newest is that of the latest epoch, and two epochs may share a number', async () => {
  const store = newStore()
  await add(store, 7)
  await add(store, 8)
  const successor = await add(store, 8, { epoch: 2, content: 'other' })
  expect(store.latest(slotKey)).toBe(successor)
  expect(store.open(slotKey, 8)).toBe(successor)
  expect(store.open(slotKey, 8, 2)).toBe(successor)
  expect(store.open(slotKey, 8, 1)?.manifest.epoch).toBe(1)
  await expect(add(store, 8, { epoch: 2 })).rejects.toMatchObject({ code: 'Superseded' })
  const again = newStore()
  expect(await again.load()).toEqual([])
  expect(again.list().map(({ manifest }) => [manifest.epoch, manifest.generation])).toEqual([
    [2, 8],
    [1, 8],
    [1, 7],
  ])
})

test('who waits until nobody reads a slot waits for the last reader of any of its generations', async () => {
  const store = newStore()
  for (const generation of [1, 2]) await add(store, generation)
  const { signal } = new AbortController()
  await store.unread(slotKey, signal)
  const [first, second] = [store.retain(slotKey, 1), store.retain(slotKey, 2)]
  await store.prune(slotKey, 1)
  let unread = false
  const waiting = store.unread(slotKey, signal).then(() => {
    unread = true
  })
  const end = new AbortController()
  const given = store.unread(slotKey, end.signal)
  end.abort(new Error('given up'))
  await expect(given).rejects.toThrow('given up')
  second()
  await setImmediate()
  expect(unread).toBe(false)
  first()
  await waiting
})

test('a claim to a slot counts for who waits, and keeps nothing', async () => {
  const store = newStore()
  await add(store, 1)
  const claims = [store.announceReader(slotKey), store.announceReader(slotKey)]
  store.announceReader({ ...slotKey, name: 'carts-7' })
  let unread = false
  const waiting = store.unread(slotKey, new AbortController().signal).then(() => {
    unread = true
  })
  await store.remove(slotKey)
  expect(store.bytes).toBe(0)
  claims[0]?.()
  claims[0]?.()
  await setImmediate()
  expect(unread).toBe(false)
  claims[1]?.()
  await waiting
})

test('prune keeps the newest, and what is read until it is read no more', async () => {
  const store = newStore()
  for (const generation of [1, 2, 3, 4]) await add(store, generation)
  const dir = store.open(slotKey, 1)?.dir ?? ''
  const release = store.retain(slotKey, 1)
  const releaseTwice = store.retain(slotKey, 1)
  const full = store.bytes

  await store.prune(slotKey, 2)

  expect(store.list().map(({ manifest }) => manifest.generation)).toEqual([4, 3])
  expect(store.open(slotKey, 1)).toBeUndefined()
  expect(() => store.retain(slotKey, 1)).toThrow(expect.objectContaining({ code: 'NoSuchGeneration' }))
  expect((await readdir(join(root, slotName(slotKey)))).sort()).toEqual(['1', '3', '4'])
  expect(store.bytes).toBe((full / 4) * 3)
  release()
  release()
  expect(await readFile(join(dir, 'shm.tar'), 'utf8')).toBe('shm')
  releaseTwice()
  await expect.poll(() => readdir(join(root, slotName(slotKey)))).toEqual(['3', '4'])
  await expect.poll(() => store.bytes).toBe(full / 2)
})

test('D9.swept: a removed or dead slot leaves nothing', async () => {
  const store = newStore()
  const other = { ...slotKey, incarnation: 'ffffffff' }
  await add(store, 1)
  const draft = await store.begin(other, 1)
  await draft.commit(manifestOf(1, { slot: other }))
  await store.remove(slotKey)
  expect(store.list().map(({ manifest }) => manifest.slot)).toEqual([other])
  await store.remove(other)
  expect(await onDisk()).toEqual([])
  expect(store.bytes).toBe(0)
})

test('one namespace cannot take all: there is always something left for another', async () => {
  const page = 4096
  const store = newStore({ budget: 64 * page, share: 0.75 })
  const slotOf = (namespace: string, slot: number) => ({ ...slotKey, namespace, name: `carts-${slot}` })
  const begun = async (namespace: string, slot: number, pages: number) => {
    const draft = await store.begin(slotOf(namespace, slot), 1)
    draft.reserve(pages * page)
    return draft
  }
  // Drafts count, and so do slots: the share is the namespace's.
  await begun('greedy', 0, 40)
  await begun('greedy', 1, 8)
  await expect(begun('greedy', 2, 1)).rejects.toThrow(/namespace greedy has/)
  const draft = await begun('modest', 0, 8)
  // The room that the other two drafts leave; no draft may grow beyond it.
  const room = draft.room()
  expect(() => draft.reserve(room + 1)).toThrow(expect.objectContaining({ code: 'StoreFull' }))
  draft.reserve(room)
  draft.reserve(8 * page)
  await putFiles(draft.dir, { a: 'a' })
  await draft.commit({ ...manifestOf(1), slot: slotOf('modest', 0) })
  // There is room for another namespace.
  await begun('late', 0, 8)
  // Complete generations count like drafts.
  await expect(begun('modest', 1, 4)).rejects.toThrow(/namespace modest has/)
})

test('D7.budget: the budget is never exceeded, and drafts count', async () => {
  const store = newStore({ budget: 12 * 4096 })
  await add(store, 1)
  expect(store.bytes).toBe(4 * 4096)
  const second = await store.begin(slotKey, 2)
  // Each draft reserves the size of the newest generation.
  const third = await store.begin(slotKey, 3)
  await expect(store.begin(slotKey, 4)).rejects.toMatchObject({ code: 'StoreFull' })
  await putFiles(third.dir, { 'a.img': page.repeat(3) })
  await expect(third.commit(manifestOf(3))).rejects.toMatchObject({ code: 'StoreFull' })
  await third.discard()
  expect(() => second.reserve(9 * 4096)).toThrow(expect.objectContaining({ code: 'StoreFull' }))
  second.reserve(8 * 4096)
  await expect(store.begin(slotKey, 4, { expectedBytes: 4096 })).rejects.toMatchObject({ code: 'StoreFull' })
  await second.discard()
  await add(store, 4)
  expect(await readdir(join(root, slotName(slotKey)))).toEqual(['1', '4'])
  expect(store.bytes).toBeLessThanOrEqual(store.budget)
})

test('a draft with anything but plain files is refused', async () => {
  const store = newStore()
  const linked = await store.begin(slotKey, 1)
  await symlink('/etc/shadow', join(linked.dir, 'pages-1.img'))
  await expect(linked.commit(manifestOf(1))).rejects.toMatchObject({ code: 'BadDraft' })
  const own = await store.begin(slotKey, 1)
  await writeFile(join(own.dir, 'manifest.json'), '{}')
  await expect(own.commit(manifestOf(1))).rejects.toMatchObject({ code: 'BadDraft' })
  const other = await store.begin(slotKey, 1)
  await expect(other.commit(manifestOf(2))).rejects.toMatchObject({ code: 'BadManifest' })
  await expect(other.commit(manifestOf(1))).rejects.toMatchObject({ code: 'Superseded' })
  expect(await readdir(join(root, slotName(slotKey)))).toEqual([])
})

test('an interrupted commit leaves no draft', async () => {
  const store = newStore()
  const draft = await store.begin(slotKey, 1)
  await putFiles(draft.dir, { 'a.img': page })
  await expect(
    draft.commit(manifestOf(1), { signal: AbortSignal.abort(new Error('no more')) }),
  ).rejects.toThrow('no more')
  expect(await readdir(join(root, slotName(slotKey)))).toEqual([])
})

test('a key that is no slot never becomes a path', async () => {
  const store = newStore()
  for (const key of [
    { ...slotKey, namespace: '..' },
    { ...slotKey, name: '../x' },
    { ...slotKey, incarnation: 'x' },
    { ...slotKey, name: 'a..b-0' },
  ])
    await expect(store.begin(key, 1)).rejects.toMatchObject({ code: 'BadManifest' })
  expect(await onDisk()).toEqual([])
})
