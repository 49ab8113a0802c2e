import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test, vi } from 'vitest'
import { createFakeClock } from '../../kube/clock.ts'
import { seededRandom, systemRandom } from '../../kube/random.ts'
import { createGenerationStore, type Stored } from '../store.ts'
import { manifestOf, putFiles, slotKey } from '../testing/generation.ts'
import { createGenerationDisk } from './disk.ts'
import { deriveKey } from './generation-key.ts'

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
  const open = mortal(real.open)
  return {
    ...real,
    async open(...args: Parameters<typeof real.open>) {
      const file = await open(...args)
      // Reads do not count: they leave nothing behind.
      file.writeFile = mortal(file.writeFile.bind(file)) as typeof file.writeFile
      file.sync = mortal(file.sync.bind(file))
      return file
    },
    rename: mortal(real.rename),
    rm: mortal(real.rm),
    mkdir: mortal(real.mkdir),
  }
})

const clock = createFakeClock()
const key = deriveKey({ agents: Buffer.alloc(32, 1), node: Buffer.alloc(32, 9) }, '02'.repeat(32), slotKey)
const { signal } = new AbortController()
const immortal = () => Object.assign(life, { calls: 0, allowed: Number.POSITIVE_INFINITY })

const diskIn = async (dir: string) => {
  const disk = createGenerationDisk({
    ...{ dir, budget: 1 << 22, share: 1, clock, random: systemRandom },
    boot: { id: 'one', uptime: () => 1 },
    space: async () => ({ free: 9e12, total: 10e12 }),
  })
  await disk.load()
  return disk
}

test('wherever the process ends, the next one finds whole files only, and every one that was promised', async () => {
  immortal()
  const root = await mkdtemp('/dev/shm/understudy-disk-crash-')
  const store = createGenerationStore({
    dir: join(root, 'm'),
    budget: 1 << 24,
    clock,
    random: seededRandom(1),
  })
  const generations: Stored[] = []
  for (const generation of [1, 2, 3]) {
    const draft = await store.begin(slotKey, generation)
    await putFiles(draft.dir, { 'containers/app/criu/pages-1.img': `memory of ${generation}`.repeat(999) })
    generations.push(await draft.commit(manifestOf(generation)))
  }
  let crashes = 0
  for (let allowed = 0; ; allowed += 1) {
    immortal()
    const dir = join(root, `disk-${allowed}`)
    let promised = 0
    const end = new Promise<'crashed'>(resolve =>
      Object.assign(life, { calls: 0, allowed, died: () => resolve('crashed') }),
    )
    const writing = async () => {
      const disk = await diskIn(dir)
      for (const stored of generations) {
        await disk.write(stored, key, { signal })
        promised = stored.manifest.generation
        await disk.prune(slotKey, key, 1)
      }
      return 'finished' as const
    }
    const outcome = await Promise.race([end, writing()])
    immortal()

    const disk = await diskIn(dir)
    const found = await disk.of(slotKey, key)
    if (promised > 0) expect([promised, promised + 1]).toContain(found[0]?.generation)
    const names = await readdir(dir)
    expect(names.sort()).toEqual(found.map(({ file }) => file).sort())
    for (const sealed of found) {
      const empty = createGenerationStore({
        ...{ dir: join(root, 'back'), budget: 1 << 24, clock, random: seededRandom(2) },
      })
      const back = await disk.read(sealed, key, empty, signal)
      expect(back.manifest.generation).toBe(sealed.generation)
      await rm(join(root, 'back'), { recursive: true })
    }
    // The disk can still be written to.
    await disk.write(generations[2] ?? expect.fail(), key, { signal })
    if (outcome === 'finished') break
    crashes += 1
  }
  expect(crashes).toBeGreaterThan(15)
  await rm(root, { recursive: true })
}, 300_000)
