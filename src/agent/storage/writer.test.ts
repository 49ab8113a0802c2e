import { expect, it } from 'vitest'
import type { GenerationDisk, Sealed } from '../../checkpoint/disk/disk.ts'
import { slotName } from '../../checkpoint/manifest.ts'
import type { Stored } from '../../checkpoint/store.ts'
import { manifestOf, slotKey } from '../../checkpoint/testing/generation.ts'
import { createFakeClock } from '../../kube/clock.ts'
import { createWriter, GaveWay } from './writer.ts'

const other = { ...slotKey, name: 'carts-1' }
const key = { tag: 'aa', secret: Buffer.alloc(32) }
const generation = (number: number, slot = slotKey): Stored => ({
  ...{ dir: `${slot.name}/${number}`, completedAt: 0, pipelineMs: 0 },
  manifest: { ...manifestOf(number, { slot }), files: [], bytes: 0 },
})

/** A disk whose writes end when they are given up, or when `end` is called; `isHung`: not even then. */
function stand({ isHung = false } = {}) {
  const clock = createFakeClock()
  const kept: Stored[] = []
  const retained: string[] = []
  let end = () => {}
  const disk: Pick<GenerationDisk, 'write'> = {
    write: (stored, _, { signal }) =>
      new Promise<Sealed>((resolve, reject) => {
        const { slot, epoch, generation, takenAt } = stored.manifest
        const head = { slot, epoch, generation, takenAt, bytes: 0, boot: 'one', stoppedUptimeMs: 0 }
        end = () => resolve({ ...head, file: 'f', bytesOnDisk: 0 })
        if (!isHung) signal.addEventListener('abort', () => reject(signal.reason))
      }),
  }
  const store = {
    latest: () => kept[0],
    list: () => kept,
    retain: ({ name }: { name: string }, generation: number) => {
      retained.push(`${name}/${generation}`)
      return () => void retained.splice(retained.indexOf(`${name}/${generation}`), 1)
    },
    removed: async () => undefined,
  }
  const writer = createWriter({ disk, store, clock }, async () => undefined)
  const { signal } = new AbortController()
  const write = (stored: Stored) => {
    const written = writer.write(stored, key, signal)
    written.catch(() => undefined)
    return written
  }
  return { clock, kept, retained, writer, write, end: () => end() }
}

it('D9.keeper: two writes of a slot in a row may be given up, and the third one goes on', async () => {
  const { writer, write, retained, end } = stand()
  for (const number of [1, 2]) {
    const written = write(generation(number))
    await writer.giveWay(slotKey.namespace, false)
    await expect(written).rejects.toBeInstanceOf(GaveWay)
    expect(retained).toEqual([])
  }
  const third = write(generation(3))
  await writer.giveWay(slotKey.namespace, false)
  expect(retained).toEqual(['carts-0/3'])
  end()
  expect((await third).generation).toBe(3)
  const fourth = write(generation(4))
  await writer.giveWay(slotKey.namespace, false)
  await expect(fourth).rejects.toBeInstanceOf(GaveWay)
})

it('D9.keeper: writes of several slots in turn are given up twice each', async () => {
  const { kept, writer, write, retained, end } = stand()
  kept.push(generation(9), generation(9, other))
  for (const slot of [slotKey, other, slotKey, other]) {
    const written = write(generation(1, slot))
    await writer.giveWay(slotKey.namespace, false)
    // A write that still ends counts once.
    await writer.giveWay(slotKey.namespace, false)
    await expect(written).rejects.toBeInstanceOf(GaveWay)
  }
  const third = write(generation(1))
  await writer.giveWay(slotKey.namespace, false)
  expect(retained).toEqual(['carts-0/1'])
  end()
  await third
})

it('every write is given up if it is urgent', async () => {
  const { writer, write } = stand()
  for (const number of [1, 2, 3, 4]) {
    const written = write(generation(number))
    await writer.giveWay(slotKey.namespace, true)
    await expect(written).rejects.toBeInstanceOf(GaveWay)
  }
})

it('a write goes on if the store keeps its generation anyway, or if another namespace needs the room', async () => {
  const { writer, write, kept, retained } = stand()
  const stored = generation(1, other)
  kept.push(stored)
  write(stored)
  await writer.giveWay(slotKey.namespace, true)
  kept.pop()
  await writer.giveWay('another', true)
  expect(retained).toEqual(['carts-1/1'])
})

it('the end of a write is awaited for a second at most, because a disk may hang', async () => {
  const { clock, writer, write } = stand({ isHung: true })
  write(generation(1))
  const given = writer.giveWay(slotKey.namespace, true)
  await clock.advance(1_000)
  await given
})

it('D9.keeper: during a move the write of an older generation is given up, and that of the newest is not', async () => {
  const { kept, writer, write, end } = stand()
  const [newest, older] = [generation(2), generation(1)]
  kept.push(newest, older)
  const moving = [slotName(slotKey)]
  const written = write(newest)
  writer.giveUpOlder(moving)
  end()
  expect((await written).generation).toBe(2)
  for (const _ of [1, 2]) {
    const next = write(older)
    writer.giveUpOlder([])
    writer.giveUpOlder(moving)
    writer.giveUpOlder(moving)
    await expect(next).rejects.toBeInstanceOf(GaveWay)
  }
  const third = write(older)
  writer.giveUpOlder(moving)
  end()
  expect((await third).generation).toBe(1)
  const elsewhere = write(older)
  writer.giveUpOlder(['shop.others.0.0a1b2c3d'])
  end()
  expect((await elsewhere).generation).toBe(1)
})
