/**
 * Reads parts of a generation's files, mostly in ascending order and often a page at a time, through a few windows: a
 * separate read for each page would cost more than all the rest.
 */
import { type FileHandle, open } from 'node:fs/promises'
import { join } from 'node:path'
import { CheckpointError } from '../errors.ts'
import { chunkBytes } from '../files.ts'
import { isSystemError, type Stored } from '../stored.ts'

const windows = 4

export interface WindowReader {
  /**
   * Returns bytes of a file of the manifest, by its index; valid until the next call. At most `chunkBytes` at once.
   * @throws CheckpointError Corrupt when the file ends early, NoSuchGeneration when it is gone.
   */
  read(file: number, offset: number, length: number): Promise<Buffer>
  /** Returns the open file. It belongs to the reader. @throws as `read`. */
  handle(file: number): Promise<FileHandle>
  /** The same as `read` without waiting, if a window already holds the bytes. */
  peek(file: number, offset: number, length: number): Buffer | undefined
  close(): Promise<void>
}

interface Place {
  readonly file: number
  readonly start: number
}

/** A window that is being read before anyone asks for it. */
interface Coming extends Place {
  readonly buffer: Buffer
  readonly reading: Promise<{ readonly bytesRead: number }>
}

interface Window extends Place {
  /** The allocation, which the next window reuses. */
  readonly buffer: Buffer
  readonly bytes: Buffer
}

export function createWindowReader({ dir, manifest }: Stored): WindowReader {
  const handles = new Map<number, FileHandle>()
  /** The most recently used window comes first. */
  const recent: Window[] = []
  const joined = Buffer.allocUnsafe(chunkBytes)
  let last: Place | undefined
  let coming: Coming | undefined
  /** Under way: their buffers belong to the kernel. */
  const reads = new Set<Promise<unknown>>()

  async function handleOf(file: number): Promise<FileHandle> {
    const known = handles.get(file)
    if (known !== undefined) return known
    const entry = manifest.files[file]
    if (entry === undefined) throw new CheckpointError('Corrupt', `the base has no file ${file}`)
    const handle = await open(join(dir, entry.path), 'r').catch(error => {
      if (!isSystemError(error, 'ENOENT')) throw error
      throw new CheckpointError('NoSuchGeneration', `generation ${manifest.generation} was removed`, error)
    })
    handles.set(file, handle)
    return handle
  }

  function peekWindow(file: number, start: number): Window | undefined {
    const index = recent.findIndex(window => window.file === file && window.start === start)
    const window = recent[index]
    if (window === undefined || index === 0) return window
    recent.splice(index, 1)
    recent.unshift(window)
    return window
  }

  async function window(file: number, start: number): Promise<Window> {
    const known = peekWindow(file, start)
    if (known !== undefined) return known
    const oldest = recent.length < windows ? undefined : recent.pop()
    const begin = async (start: number, free: Buffer | undefined): Promise<Coming> => {
      const handle = await handleOf(file)
      const buffer = free ?? Buffer.allocUnsafe(chunkBytes)
      const reading = handle.read(buffer, 0, buffer.length, start)
      const end = () => reads.delete(reading)
      reads.add(reading)
      // The next `await` reports a failure. Without this, Node would also report an unhandled rejection.
      reading.then(end, end)
      return { file, start, buffer, reading }
    }
    const isHere = coming?.file === file && coming.start === start
    const present = isHere && coming ? coming : await begin(start, oldest?.buffer)
    coming = undefined
    const { bytesRead } = await present.reading
    const loaded = { file, start, buffer: present.buffer, bytes: present.buffer.subarray(0, bytesRead) }
    recent.unshift(loaded)
    // A file that is read from its start to its end is read while the window before is used.
    const isInOrder = last?.file === file && last.start + chunkBytes === start && bytesRead === chunkBytes
    last = { file, start }
    if (isInOrder) coming = await begin(start + chunkBytes, isHere ? oldest?.buffer : undefined)
    return loaded
  }

  const startOf = (offset: number) => offset - (offset % chunkBytes)
  const part = ({ start, bytes }: Window, offset: number, length: number) => {
    const found = bytes.subarray(offset - start, offset - start + length)
    if (found.length < length) throw new CheckpointError('Corrupt', 'a file of the base is truncated')
    return found
  }

  return {
    handle: handleOf,
    peek(file, offset, length) {
      const start = startOf(offset)
      if (offset + length > start + chunkBytes) return undefined
      const found = peekWindow(file, start)
      return found && part(found, offset, length)
    },
    async read(file, offset, length) {
      const boundary = startOf(offset) + chunkBytes
      if (offset + length <= boundary) return part(await window(file, startOf(offset)), offset, length)
      const first = part(await window(file, startOf(offset)), offset, boundary - offset)
      first.copy(joined)
      const rest = length - first.length
      part(await window(file, boundary), boundary, rest).copy(joined, first.length)
      return joined.subarray(0, length)
    },
    async close() {
      await Promise.allSettled(reads)
      for (const handle of handles.values()) await handle.close()
      handles.clear()
    },
  }
}
