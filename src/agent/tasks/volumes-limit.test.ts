import { appendFile, mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { systemClock as clock } from '../../kube/clock.ts'
import type { LocatedPod } from '../criu/memory-driver.ts'
import { sizeOf } from '../criu/volumes-size.ts'
import { assertVolumesFit } from './volumes-limit.ts'
import { withinLimits } from './watched-draft.ts'

let dir: string
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'volumes-'))
})
afterEach(() => rm(dir, { recursive: true }))

const { signal } = new AbortController()
const tooLarge = { code: 'VolumesTooLarge' }
const pod = {} as LocatedPod
const within = <T>(
  volumeBytes: number,
  dump: (stop: AbortSignal) => Promise<T>,
  until: AbortSignal = signal,
): Promise<T> => withinLimits(dir, { volumeBytes, setAside: () => 0 }, clock, until, dump)

describe('D3.volumes: checkpoint.volumes.maxSize', () => {
  it('ends a dump while it is being written, and says so', async () => {
    await mkdir(join(dir, 'volumes'))
    const dump = async (stop: AbortSignal) => {
      for (;;) {
        stop.throwIfAborted()
        await appendFile(join(dir, 'volumes/cache.tar'), Buffer.alloc(20_000))
        await clock.sleep(5, stop)
      }
    }
    await expect(within(100_000, dump)).rejects.toMatchObject(tooLarge)
  })

  it('counts layers, volumes and /dev/shm together, and nothing of memory', async () => {
    const dump = async () => {
      await mkdir(join(dir, 'containers/app/criu'), { recursive: true })
      await mkdir(join(dir, 'volumes'))
      await writeFile(join(dir, 'containers/app/criu/pages-1.img'), Buffer.alloc(900_000))
      await writeFile(join(dir, 'containers/app/layer.tar'), Buffer.alloc(40_960))
      await writeFile(join(dir, 'volumes/a.tar'), Buffer.alloc(40_960))
      await writeFile(join(dir, 'shm.tar'), Buffer.alloc(40_960))
    }
    await expect(within(122_879, dump)).rejects.toMatchObject(tooLarge)
    await rm(dir, { recursive: true })
    await mkdir(dir)
    await expect(within(122_880, dump)).resolves.toBeUndefined()
  })

  it('archives of nothing are not held against a limit of nothing', async () => {
    const dump = async () => writeFile(join(dir, 'shm.tar'), Buffer.alloc(10_240))
    await expect(within(0, dump)).resolves.toBeUndefined()
  })

  it("tells the dump's own failure, and ends with its own signal", async () => {
    const failing = async () => {
      throw new Error('criu')
    }
    await expect(within(1, failing)).rejects.toThrow('criu')
    const stop = new AbortController()
    const hanging = (end: AbortSignal) => clock.sleep(60_000, end)
    const running = within(1, hanging, stop.signal)
    stop.abort(new Error('not wanted'))
    await expect(running).rejects.toThrow('not wanted')
  })

  it('looks before the first dump, and not again while archives tell', async () => {
    let looks = 0
    const work = {
      measureVolumes: async () => {
        looks += 1
        return 101
      },
    }
    await expect(assertVolumesFit(work, pod, { limit: 100, known: false, signal })).rejects.toMatchObject(
      tooLarge,
    )
    await assertVolumesFit(work, pod, { limit: 101, known: false, signal })
    await assertVolumesFit(work, pod, { limit: 100, known: true, signal })
    expect(looks).toBe(2)
  })
})

describe('the size of a directory', () => {
  it('is about that of its archive, and is counted no further than asked', async () => {
    await mkdir(join(dir, 'a/b'), { recursive: true })
    await writeFile(join(dir, 'a/one'), Buffer.alloc(1_000))
    await writeFile(join(dir, 'a/b/two'), Buffer.alloc(100_000))
    // Members: a, a/one, a/b, a/b/two.
    expect(await sizeOf(dir, 1e9, signal)).toBe(4 * 512 + 1_024 + 100_352)
    expect(await sizeOf(dir, 1_000, signal)).toBeGreaterThan(1_000)
    expect(await sizeOf(join(dir, 'absent'), 1e9, signal)).toBe(0)
  })

  it('links lead nowhere', async () => {
    await mkdir(join(dir, 'host'))
    await writeFile(join(dir, 'host/large'), Buffer.alloc(100_000))
    await mkdir(join(dir, 'volume'))
    await symlink(join(dir, 'host'), join(dir, 'volume/link'))
    expect(await sizeOf(join(dir, 'volume'), 1e9, signal)).toBe(512)
    expect(await sizeOf(join(dir, 'volume/link'), 1e9, signal)).toBe(0)
  })
})
