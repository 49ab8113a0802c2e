/**
 * A codec without compression or comparison, for tests of what carries it: the length and the text of the manifest,
 * then all files one after the other, those that the base has with the same digest left out.
 */
import { createReadStream } from 'node:fs'
import { copyFile, mkdir, open } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { CheckpointError } from '../../../checkpoint/errors.ts'
import { formatManifest, type GenerationFile, parseManifest } from '../../../checkpoint/manifest.ts'
import type { Stored } from '../../../checkpoint/store.ts'
import type { Apply, Encode } from '../codec.ts'

const sameIn = (base: Stored | undefined, file: GenerationFile) =>
  base?.manifest.files.find(({ sha256 }) => sha256 === file.sha256)

export const plainEncode: Encode = async function* (base, next) {
  const text = Buffer.from(formatManifest(next.manifest))
  const length = Buffer.alloc(4)
  length.writeUInt32BE(text.length)
  yield Buffer.concat([length, text])
  for (const file of next.manifest.files)
    if (!sameIn(base, file))
      for await (const chunk of createReadStream(join(next.dir, file.path))) yield chunk as Buffer
}

export const plainApply: Apply = async (stream, base, draft) => {
  const iterator = stream[Symbol.asyncIterator]()
  let buffered = Buffer.alloc(0)
  const read = async (count: number): Promise<Buffer> => {
    while (buffered.length < count) {
      const { value, done } = await iterator.next()
      if (done) throw new CheckpointError('Corrupt', 'the stream is cut off')
      buffered = Buffer.concat([buffered, value])
    }
    const taken = buffered.subarray(0, count)
    buffered = buffered.subarray(count)
    return taken
  }
  const manifest = parseManifest((await read((await read(4)).readUInt32BE())).toString())
  for (const file of manifest.files) {
    const path = join(draft.dir, file.path)
    await mkdir(dirname(path), { recursive: true })
    const same = sameIn(base, file)
    if (base && same) {
      await copyFile(join(base.dir, same.path), path)
      continue
    }
    const to = await open(path, 'wx', 0o600)
    try {
      for (let left = file.size; left > 0; ) {
        const chunk = await read(Math.min(left, 65536))
        await to.write(chunk)
        left -= chunk.length
      }
    } finally {
      await to.close()
    }
  }
  const end = await iterator.next()
  if (!end.done || buffered.length > 0)
    throw new CheckpointError('Corrupt', 'the stream goes on after its end')
  const stored = await draft.commit(manifest)
  if (JSON.stringify(stored.manifest.files) !== JSON.stringify(manifest.files))
    throw new CheckpointError('Corrupt', 'the files are not those of the manifest')
  return stored
}
