/**
 * A large image of memory takes the file of a generation that is no longer needed, and only pages
 * that differ are written. A copy of all of the memory, for a few changed pages, would take longer than all the rest.
 */
import { type FileHandle, lstat, rename, rm, truncate } from 'node:fs/promises'
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
import { createMoves, type MoveOptions, writeAllSync } from './moves.ts'
import type { Output } from './output.ts'

export interface Spare {
  /**
   * Moves the file of this path to its place in the draft.
   * @returns the digests of its pages; undefined if there is no such file, or it has no digests by page.
   */
  take(file: Pick<GenerationFile, 'path' | 'byPage'>, to: string): Promise<Buffer | undefined>
}

/**
 * Undefined if the store has no generation to spare.
 * @param files of the new generation. The draft may have no room beside the large images of the spare one: those that none of these files
 * can take are removed at once, and no other is longer than the file that takes it.
 */
export async function openSpare(
  draft: Pick<Draft, 'takeSpare'>,
  files?: readonly GenerationFile[],
): Promise<Spare | undefined> {
  const spare = draft.takeSpare()
  if (spare === undefined) return undefined
  const digests = await readPageDigests(spare)
  if (files !== undefined) {
    const sizes = new Map(files.flatMap(({ path, size, byPage }) => (byPage ? [[path, size]] : [])))
    for (const [index, { path, size, byPage }] of spare.manifest.files.entries()) {
      if (byPage !== true) continue
      const next = digests.has(index) ? sizes.get(path) : undefined
      const file = join(spare.dir, path)
      if (next === undefined || (await isLinked(file))) await rm(file, { force: true })
      else if (next < size) await truncate(file, next)
    }
  }
  return {
    async take({ path, byPage }, to) {
      const known = digestsOfPath(digests, spare.manifest, path)
      if (byPage !== true || known === undefined) return undefined
      const from = join(spare.dir, path)
      try {
        if (await isLinked(from)) return undefined
        await rename(from, to)
        return known
      } catch (error) {
        if (isSystemError(error, 'ENOENT')) return undefined
        throw error
      }
    },
  }
}

/** A dump that was killed may have left a link to the file. */
const isLinked = async (file: string): Promise<boolean> => (await lstat(file)).nlink > 1

/**
 * @param total the size that the file will have.
 * @param before the digests of the pages that it has now.
 */
export async function createPatch(
  handle: FileHandle,
  total: number,
  before: Buffer,
  options: MoveOptions = {},
): Promise<Output> {
  const pages = createPageDigester(total)
  const moves = createMoves(handle, options)
  let size = 0
  await handle.truncate(total)

  const write = (bytes: Buffer) => {
    pages.update(bytes)
    writeAllSync(handle, bytes, size)
    size += bytes.length
  }

  return {
    write: async bytes => write(bytes),
    async copy(length, known, source) {
      if (known === undefined || !pages.isAtPage) return write(await source.read())
      if (known.length !== digestBytesOf(length))
        throw new CheckpointError(
          'Corrupt',
          `${known.length / digestBytes} digests are known of ${length} bytes`,
        )
      const rows = compareDigests(known, digestsAt(before, size, length))
      for (const { from, to, same } of rows) {
        const bytes = (to - from) * pageBytes
        pages.addKnown(known.subarray(from * digestBytes, to * digestBytes))
        if (!same)
          await moves.add(await source.file(), {
            first: source.at + from * pageBytes,
            second: size,
            length: bytes,
          })
        size += bytes
      }
    },
    async finish() {
      await moves.finish()
      return { size, ...pages.finish() }
    },
  }
}
