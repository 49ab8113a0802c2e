import { appendFile, mkdir, mkdtemp, rm, truncate, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createGenerationStore, type Draft, type GenerationStore } from '../../checkpoint/store.ts'
import { manifestOf, putFiles, slotKey } from '../../checkpoint/testing/generation.ts'
import { systemClock as clock } from '../../kube/clock.ts'
import { systemRandom as random } from '../../kube/random.ts'
import { bytesInDraft, withinLimits } from './watched-draft.ts'

const kib = 1024
const budget = 64 * 1024 * kib

let dir: string
let store: GenerationStore
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'draft-'))
  store = createGenerationStore({ dir: join(dir, 'store'), budget, share: 0.75, clock, random })
  await store.load()
})
afterEach(() => rm(dir, { recursive: true }))

const { signal } = new AbortController()
const greedy = { ...slotKey, namespace: 'greedy' }
const modest = { ...slotKey, namespace: 'modest' }

const save = async (slot: typeof slotKey, generation: number, dump: (to: string) => Promise<void>) => {
  const draft = await store.begin(slot, generation)
  try {
    await watched(draft, () => dump(draft.dir))
    return await draft.commit(manifestOf(generation, { slot }))
  } catch (error) {
    await draft.discard()
    throw error
  }
}
const watched = (draft: Draft, dump: (stop: AbortSignal) => Promise<void>) =>
  withinLimits(
    draft.dir,
    {
      volumeBytes: Number.MAX_SAFE_INTEGER,
      setAside: bytes => {
        draft.grow(bytes)
        return draft.room() - bytes
      },
    },
    clock,
    signal,
    dump,
  )

describe('D10.tmpfs: a dump that grows beyond what was set aside for it', () => {
  it('in many files, each of which is small, is ended, keeps the last good one, and costs others nothing', async () => {
    const small = (to: string) => putFiles(to, { 'containers/app/criu/pages-1.img': 'a' })
    await save(greedy, 1, small)
    const draft = await store.begin(greedy, 2)
    let files = 0
    const growing = watched(draft, async stop => {
      await mkdir(join(draft.dir, 'containers/app/criu'), { recursive: true })
      for (; ; files += 1) {
        stop.throwIfAborted()
        await writeFile(join(draft.dir, `containers/app/criu/pages-${files}.img`), Buffer.alloc(256 * kib))
        // Meanwhile the store saves other slots in the room that is theirs.
        if (files % 64 === 0) await save(modest, files / 64 + 1, small)
        await clock.sleep(1)
      }
    })
    await expect(growing).rejects.toMatchObject({ code: 'StoreFull' })
    await draft.discard()
    expect(store.latest(greedy)?.manifest.generation).toBe(1)
    expect(store.latest(modest)?.manifest.generation).toBeGreaterThan(1)
    await save(greedy, 2, small)
  })

  it('in archives is ended, too', async () => {
    const draft = await store.begin(greedy, 1)
    const growing = watched(draft, async stop => {
      await mkdir(join(draft.dir, 'volumes'), { recursive: true })
      await writeFile(join(draft.dir, 'volumes/cache.tar'), '')
      for (let size = 0; ; size += 1024 * kib) {
        stop.throwIfAborted()
        await truncate(join(draft.dir, 'volumes/cache.tar'), size)
        await clock.sleep(1)
      }
    })
    await expect(growing).rejects.toMatchObject({ code: 'StoreFull' })
  })

  it('has set aside what it has written: nobody else is given that room meanwhile', async () => {
    const draft = await store.begin(greedy, 1)
    await watched(draft, async () => {
      const room = store.room
      await appendFile(join(draft.dir, 'shm.tar'), Buffer.alloc(1024 * kib))
      await expect.poll(() => room - store.room).toBeGreaterThanOrEqual(1024 * kib)
    })
  })

  it('what was set aside for it before stays so while there is less of it', async () => {
    const draft = await store.begin(greedy, 1, { expectedBytes: 1024 * kib })
    const { room } = store
    draft.grow(4 * kib)
    expect(store.room).toBe(room)
    draft.grow(2048 * kib)
    expect(store.room).toBe(room - 1024 * kib)
  })

  it('is looked at the more often the less room is left', async () => {
    const pauses: number[] = []
    const over = Promise.withResolvers<void>()
    const left = [budget, budget, 20 * 1024 * kib, 0]
    await withinLimits(
      dir,
      {
        volumeBytes: 0,
        setAside: () => left.shift() ?? 0,
        measure: async () => ({ archived: 0, written: 0 }),
      },
      {
        ...clock,
        monotonic: () => 0,
        sleep: async ms => {
          pauses.push(ms)
          if (left.length > 0) return
          over.resolve()
          await Promise.reject(new Error('over'))
        },
      },
      signal,
      () => over.promise,
    )
    expect(pauses.slice(0, 5)).toEqual([2, 32, 32, 10, 2])
  })

  it('also when it is through before anybody looks', async () => {
    const draft = await store.begin(greedy, 1)
    const dumping = watched(draft, async () => {
      await mkdir(join(draft.dir, 'volumes'), { recursive: true })
      for (const name of ['a', 'b']) {
        await writeFile(join(draft.dir, `volumes/${name}.tar`), '')
        await truncate(join(draft.dir, `volumes/${name}.tar`), budget / 2)
      }
    })
    await expect(dumping).rejects.toMatchObject({ code: 'StoreFull' })
  })
})

it('what is in a draft is counted as the budget counts it, and archives by themselves', async () => {
  expect(await bytesInDraft(join(dir, 'absent'))).toEqual({ archived: 0, written: 8 * kib })
  await putFiles(join(dir, 'draft'), {
    'containers/app/criu/pages-1.img': Buffer.alloc(5 * kib),
    'containers/app/layer.tar': Buffer.alloc(20 * kib),
    'volumes/a.tar': Buffer.alloc(10 * kib),
    'volumes/a.list': 'x',
  })
  expect(await bytesInDraft(join(dir, 'draft'))).toEqual({
    archived: 20 * kib,
    written: (8 + 8 + 20 + 12 + 4) * kib,
  })
})
