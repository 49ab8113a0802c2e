/** Files with the pages of a task: read from anywhere, and written from their start to their end. */
import { readSync } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { join } from 'node:path'
import type { MoveOptions } from '../delta/moves.ts'
import { createOutput, type OutputOptions } from '../delta/output.ts'
import { createPatch } from '../delta/patch.ts'
import { CheckpointError } from '../errors.ts'
import { digestsAt } from '../page-digests.ts'

/** Bytes of a page. */
export const page = 4096

const chunkBytes = 1024 * 1024

export const pagesName = (pagesId: number): string => `pages-${pagesId}.img`

export const gone = (error: unknown): never => {
  throw new CheckpointError('BadImage', 'the dump before is gone', error)
}

export interface Pages extends AsyncDisposable {
  readonly file: FileHandle
  /** Reads from a page on; the buffer is filled unless the file ends. */
  read(buffer: Buffer, at: number): Promise<void>
  /** Returns a page at once: it is in memory, and a round trip to the thread pool takes longer than to read it. */
  page(at: number): Buffer
}

export async function openPages(directory: string, pagesId: number): Promise<Pages> {
  const name = pagesName(pagesId)
  const file: FileHandle = await open(join(directory, name), 'r').catch(gone)
  // A window: most runs are a few pages, and a read for each would cost more than all the rest.
  const window = Buffer.allocUnsafe(chunkBytes)
  let from = 0
  let length = 0
  const readAt = async (buffer: Buffer, position: number) => {
    for (let have = 0; have < buffer.length; ) {
      const { bytesRead } = await file.read(buffer, have, buffer.length - have, position + have)
      if (bytesRead === 0) throw new CheckpointError('BadImage', `${name} is truncated`)
      have += bytesRead
    }
  }
  const read = async (buffer: Buffer, at: number) => {
    const position = at * page
    if (buffer.length >= window.length / 4) return readAt(buffer, position)
    if (position < from || position + buffer.length > from + length) {
      from = position
      length = (await file.read(window, 0, window.length, from)).bytesRead
      if (length < buffer.length) throw new CheckpointError('BadImage', `${name} is truncated`)
    }
    window.copy(buffer, 0, position - from, position - from + buffer.length)
  }
  return {
    file,
    read,
    page(at) {
      const buffer = Buffer.allocUnsafe(page)
      if (readSync(file.fd, buffer, 0, page, at * page) < page)
        throw new CheckpointError('BadImage', `${name} is truncated`)
      return buffer
    },
    [Symbol.asyncDispose]: () => file.close(),
  }
}

interface PageWriterOptions extends MoveOptions {
  readonly size: number
  readonly digest: OutputOptions['digest']
  /** The digests of the pages that the file has; undefined: there is no file. */
  readonly spare: Buffer | undefined
}

export async function createPageWriter(path: string, { size, digest, spare, ...moves }: PageWriterOptions) {
  const file = await open(path, spare === undefined ? 'wx' : 'r+', 0o600)
  const buffers = [Buffer.allocUnsafe(chunkBytes), Buffer.allocUnsafe(chunkBytes)] as const
  const output =
    spare === undefined
      ? createOutput(file, { size, digest }, buffers)
      : await createPatch(file, size, spare, moves)
  const part = Buffer.allocUnsafe(chunkBytes)
  return {
    /**
     * @param from stays open until `finish`.
     * @param known the digests of all pages of that file.
     */
    async copy(from: Pages, at: number, pages: number, known?: Buffer): Promise<void> {
      for (let done = 0; done < pages; ) {
        const count = Math.min(pages - done, chunkBytes / page)
        const first = at + done
        const digests = known && digestsAt(known, first * page, count * page)
        const bytes = part.subarray(0, count * page)
        await output.copy(count * page, digests, {
          read: async () => {
            await from.read(bytes, first)
            return bytes
          },
          file: async () => from.file,
          at: first * page,
        })
        done += count
      }
    },
    /** Returns the digests of its pages, if it has them. */
    finish: async () => (await output.finish()).digests,
    [Symbol.asyncDispose]: () => file.close(),
  }
}
