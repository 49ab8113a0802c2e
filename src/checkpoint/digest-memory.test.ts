import { cp, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { systemClock } from '../kube/clock.ts'
import { systemRandom } from '../kube/random.ts'
import { applyDelta, encodeDelta } from './delta.ts'
import { createDigestMemory } from './digest-memory.ts'
import { readPageDigests } from './page-digests.ts'
import { createGenerationStore } from './store.ts'
import { manifestOf, putFiles, slotKey } from './testing/generation.ts'
import { memoryImages } from './testing/memory.ts'

const digests = (bytes: number) => new Map([[0, Buffer.alloc(bytes)]])

test('a memory of digests gives up those that were used longest ago, and those that are forgotten', () => {
  const hold = createDigestMemory(100)
  const [first, second] = [digests(40), digests(40)]
  const [a, b] = [hold(first), hold(second)]
  expect(a.get()).toBe(first)
  const c = hold(digests(30))
  expect([a.get(), b.get(), c.get()?.size]).toEqual([first, undefined, 1])
  a.forget()
  const d = hold(digests(70))
  expect([a.get(), c.get()?.size, d.get()?.size]).toEqual([undefined, 1, 1])
  expect(hold(digests(101)).get()).toBeUndefined()
  expect(d.get()?.size).toBe(1)
})

test('a store holds the digests of what it has made and received, until it is removed', async () => {
  const root = await mkdtemp(join(tmpdir(), 'digest-memory-'))
  try {
    const newStore = (name: string) =>
      createGenerationStore({
        ...{ dir: join(root, name), budget: 1 << 30, clock: systemClock, random: systemRandom },
      })
    const [source, holder] = [newStore('source'), newStore('holder')]
    const draft = await source.begin(slotKey, 1)
    const pages = Array.from({ length: 300 }, (_, page) => [1000 + page, Buffer.alloc(4096, page)] as const)
    await putFiles(draft.dir, memoryImages(1, 1, new Map(pages)))
    const made = await draft.commit(manifestOf(1))
    const copy = await applyDelta(encodeDelta(undefined, made), undefined, await holder.begin(slotKey, 1))
    // Nothing tells the digests of a file that its maker vouches for without them.
    const third = newStore('third')
    const vouched = await third.begin(slotKey, 1)
    await cp(made.dir, vouched.dir, { recursive: true })
    for (const name of ['manifest.json', 'arrival.json']) await rm(join(vouched.dir, name), { force: true })
    const { files, bytes: _, ...rest } = made.manifest
    expect((await vouched.commit(rest, { files })).held).toBeUndefined()
    for (const [store, stored] of [
      [source, made],
      [holder, copy],
    ] as const) {
      const onDisk = await readPageDigests({ dir: stored.dir, manifest: stored.manifest })
      expect(onDisk.size).toBe(1)
      expect(stored.held?.get()).toEqual(onDisk)
      await writeFile(join(stored.dir, 'page-digests'), 'not read')
      expect(await readPageDigests(stored)).toEqual(onDisk)
      await store.remove(slotKey)
      expect(stored.held?.get()).toBeUndefined()
    }
  } finally {
    await rm(root, { recursive: true })
  }
})
