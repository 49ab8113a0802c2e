/**
 * A large image of memory takes the file of a generation that is no longer needed, and only pages
 * that differ are written. A copy of all of the memory, for a few changed pages, would take longer than all the rest.
 */
import { writeSync } from 'node:fs'
import { type FileHandle, lstat, rename } from 'node:fs/promises'
import { join } from 'node:path'
import { CheckpointError } from '../errors.ts'
import type { Draft } from '../generation-store.ts'
import type { GenerationFile } from '../manifest.ts'
import {
  compareDigests,
  createPageDigester,
  digestsAt,
  digestsOfPath,
  readPageDigests,
} from '../page-digests.ts'
import { digestBytes, digestBytesOf, isSystemError, pageBytes } from '../stored.ts'
import type { Output } from './output.ts'

export interface Spare {
  /**
   * Moves the file of this path to its place in the draft.
   * @returns the digests of its pages; undefined if there is no such file, or it has no digests by page.
   */
  take(file: Pick<GenerationFile, 'path' | 'byPage'>, to: string): Promise<Buffer | undefined>
}

/** Undefined if the store has no generation to spare. */
export async function openSpare(draft: Pick<Draft, 'takeSpare'>): Promise<Spare | undefined> {
  const spare = draft.takeSpare()
  if (spare === undefined) return undefined
  const digests = await readPageDigests(spare)
  return {
    async take({ path, byPage }, to) {
      const known = digestsOfPath(digests, spare.manifest, path)
      if (byPage !== true || known === undefined) return undefined
      const from = join(spare.dir, path)
      try {
        // A dump that was killed may have left a link to the file.
        if ((await lstat(from)).nlink > 1) return undefined
        await rename(from, to)
        return known
      } catch (error) {
        if (isSystemError(error, 'ENOENT')) return undefined
        throw error
      }
    },
  }
}

/**
 * @param total the size that the file will have.
 * @param before the digests of the pages that it has now.
 */
export async function createPatch(handle: FileHandle, total: number, before: Buffer): Promise<Output> {
  const pages = createPageDigester(total)
  let size = 0
  await handle.truncate(total)

  const put = (bytes: Buffer) => {
    // Without a round trip to the thread pool, which would take longer than to copy a page in memory.
    for (let from = 0; from < bytes.length; )
      from += writeSync(handle.fd, bytes, from, bytes.length - from, size + from)
    size += bytes.length
  }
  const write = (bytes: Buffer) => {
    pages.update(bytes)
    put(bytes)
  }

  return {
    write: async bytes => write(bytes),
    async copy(length, known, read) {
      if (known === undefined || !pages.isAtPage) return write(await read(0, length))
      if (known.length !== digestBytesOf(length))
        throw new CheckpointError(
          'Corrupt',
          `${known.length / digestBytes} digests are known of ${length} bytes`,
        )
      const rows = compareDigests(known, digestsAt(before, size, length))
      for (const { from, to, same } of rows) {
        const bytes = (to - from) * pageBytes
        pages.addKnown(known.subarray(from * digestBytes, to * digestBytes))
        if (same) size += bytes
        else put(await read(from * pageBytes, bytes))
      }
    },
    finish: async () => ({ size, ...pages.finish() }),
  }
}
