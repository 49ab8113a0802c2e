import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test, vi } from 'vitest'
import { createFakeClock } from '../kube/clock.ts'
import { seededRandom } from '../kube/random.ts'
import { slotName } from './manifest.ts'
import { createGenerationStore } from './store.ts'
import { manifestOf, putFiles, slotKey } from './testing/generation.ts'

/** Simulates a crash: no call after the last allowed one has an effect or returns. */
const life = vi.hoisted(() => ({ calls: 0, allowed: Number.POSITIVE_INFINITY, died: () => {} }))

vi.mock('node:fs/promises', async importOriginal => {
  const real = await importOriginal<typeof import('node:fs/promises')>()
  const mortal = <Args extends unknown[], Result>(call: (...args: Args) => Promise<Result>) =>
    ((...args: Args) => {
      life.calls += 1
      if (life.calls <= life.allowed) return call(...args)
      life.died()
      return new Promise<Result>(() => {})
    }) as typeof call
  return {
    ...real,
    open: mortal(real.open),
    rename: mortal(real.rename),
    rm: mortal(real.rm),
    rmdir: mortal(real.rmdir),
    mkdir: mortal(real.mkdir),
    chmod: mortal(real.chmod),
    writeFile: mortal(real.writeFile),
  }
})

const clock = createFakeClock()
const contents = (generation: number) => `memory of ${generation}`.repeat(1000)

const storeIn = (dir: string) =>
  createGenerationStore({ dir, budget: 1 << 20, clock, random: seededRandom(3), uptime: () => 1 })

/** Makes generations one after the other and keeps the last two. @returns how many were complete before the crash. */
async function checkpoints(dir: string, done: (generation: number) => void) {
  const store = storeIn(dir)
  await store.load()
  for (const generation of [1, 2, 3, 4]) {
    const draft = await store.begin(slotKey, generation)
    await putFiles(draft.dir, { 'containers/app/criu/pages-1.img': contents(generation), 'shm.tar': '' })
    await draft.commit(manifestOf(generation))
    done(generation)
    await store.prune(slotKey, 2)
  }
}

test('D9.crash: wherever the process ends, the next one finds whole generations only, and every one that was promised', async () => {
  let crashes = 0
  for (let allowed = 0; ; allowed += 1) {
    Object.assign(life, { calls: 0, allowed: Number.POSITIVE_INFINITY })
    const dir = await mkdtemp(join(tmpdir(), 'crash-'))
    let completed = 0
    const end = new Promise<'crashed'>(resolve =>
      Object.assign(life, { calls: 0, allowed, died: () => resolve('crashed') }),
    )
    const outcome = await Promise.race([
      end,
      checkpoints(dir, generation => {
        completed = generation
      }).then(() => 'finished' as const),
    ])
    Object.assign(life, { calls: 0, allowed: Number.POSITIVE_INFINITY })

    const store = storeIn(dir)
    await store.load()
    const found = store.list().map(({ manifest }) => manifest.generation)
    if (completed > 0) expect([completed, completed + 1]).toContain(found[0])
    if (completed > 1) expect(found.length).toBeGreaterThanOrEqual(2)
    for (const { dir: generation, manifest } of store.list()) {
      const path = join(generation, 'containers/app/criu/pages-1.img')
      expect(await readFile(path, 'utf8')).toBe(contents(manifest.generation))
    }
    const names = await readdir(join(dir, slotName(slotKey))).catch(() => [])
    expect(names.sort()).toEqual(found.map(String).sort())
    // The store can still take a generation.
    const draft = await store.begin(slotKey, 9)
    await draft.commit(manifestOf(9))
    await rm(dir, { recursive: true })
    if (outcome === 'finished') break
    crashes += 1
  }
  expect(crashes).toBeGreaterThan(50)
}, 60_000)
