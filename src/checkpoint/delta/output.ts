/** Files that are written from their start to their end, in part with what another file has. */
import { createHash } from 'node:crypto'
import type { FileHandle } from 'node:fs/promises'
import { createPageDigester } from '../page-digests.ts'

export interface Output {
  /** Takes a copy of the bytes. */
  write(bytes: Buffer): Promise<void>
  /**
   * Writes bytes of another file.
   * @param known the digests of these pages; undefined: they are not known.
   */
  copy(length: number, known: Buffer | undefined, source: Source): Promise<void>
  finish(): Promise<Written>
}

/** Bytes of another file. */
export interface Source {
  /** Returns all of them; they are valid until its next call. */
  read(): Promise<Buffer>
  /** Returns the open file, which stays open until the output is finished. */
  file(): Promise<FileHandle>
  /** Where they begin in it. */
  readonly at: number
}

export interface Written {
  readonly size: number
  /** That of the digests of its pages, if it has them; undefined: nothing was digested. */
  readonly sha256: string | undefined
  /** The digests of its pages, if it has them. */
  readonly digests: Buffer | undefined
}

export interface OutputOptions {
  /** No more bytes may follow. */
  readonly size: number
  readonly digest: 'OfFile' | 'OfPages' | 'None'
}

/** Writes in large pieces, and hashes one piece while it writes the other. */
export function createOutput(
  handle: FileHandle,
  options: OutputOptions,
  buffers: readonly [Buffer, Buffer],
): Output {
  const pages = options.digest === 'OfPages' ? createPageDigester(options.size) : undefined
  const hash = options.digest === 'OfFile' ? createHash('sha256') : undefined
  let size = 0
  let current = 0
  let used = 0
  let written: Promise<void> = Promise.resolve()

  const buffer = () => buffers[current === 0 ? 0 : 1]

  async function flush() {
    const piece = buffer().subarray(0, used)
    await written
    written = writeAll(handle, piece)
    // The next `await` reports a failure. Without this, Node would also report an unhandled rejection.
    written.catch(() => undefined)
    hash?.update(piece)
    current = 1 - current
    used = 0
  }

  async function write(bytes: Buffer, known?: Buffer) {
    size += bytes.length
    if (known !== undefined && pages?.isAtPage) pages.addKnown(known)
    else pages?.update(bytes)
    for (let from = 0; from < bytes.length; ) {
      const part = bytes.copy(buffer(), used, from)
      used += part
      from += part
      if (used === buffer().length) await flush()
    }
  }

  return {
    write: bytes => write(bytes),
    copy: async (_, known, source) => write(await source.read(), known),
    async finish() {
      if (used > 0) await flush()
      await written
      const { sha256 = hash?.digest('hex'), digests } = pages?.finish() ?? {}
      return { size, sha256, digests }
    },
  }
}

async function writeAll(handle: FileHandle, bytes: Buffer): Promise<void> {
  for (let from = 0; from < bytes.length; ) {
    const { bytesWritten } = await handle.write(bytes, from, bytes.length - from)
    from += bytesWritten
  }
}
