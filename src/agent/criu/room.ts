/**
 * Fills files for pages before the pod is stopped. To allocate memory for a tmpfs costs more than to copy into it, and
 * several times as much on a virtual machine that returns free memory to its host. The CRIU shim keeps CRIU from
 * truncating these files (native/criu-shim/criu-shim.c).
 */
import { type FileHandle, open, readdir, readFile, stat, truncate } from 'node:fs/promises'
import { join } from 'node:path'
import { AgentError } from '../../api/agent-errors.ts'
import { parsePagemap } from '../../checkpoint/images/pagemap.ts'
import { noSpace } from '../../checkpoint/stored.ts'

/** A file among a container's images, and its size in bytes. */
export interface Expected {
  readonly name: string
  readonly size: number
}

export const isPages = (name: string): boolean => /^pages-\d+\.img$/.test(name)
const isPagemap = (name: string): boolean => /^pagemap-.*\.img$/.test(name)

const piece = Buffer.alloc(1024 * 1024)

/**
 * Makes each file of pages as large as in the previous dump; leaves all other files to CRIU.
 * @throws CheckpointError StoreFull; the signal's reason.
 */
export async function makeRoom(
  images: string,
  expected: readonly Expected[],
  signal: AbortSignal,
): Promise<void> {
  for (const { name, size } of expected) {
    if (!isPages(name)) continue
    const file = await open(join(images, name), 'wx', 0o600)
    try {
      await fill(file, size, signal)
    } catch (error) {
      throw noSpace(error)
    } finally {
      await file.close()
    }
  }
}

async function fill(file: FileHandle, size: number, signal: AbortSignal): Promise<void> {
  for (let at = 0; at < size; ) {
    signal.throwIfAborted()
    at += (await file.write(piece, 0, Math.min(piece.length, size - at), at)).bytesWritten
  }
}

/**
 * Returns this machine's page size, bytes. The kernel passes it in the auxiliary vector, which is pairs of key and
 * value.
 */
export async function pageSize(): Promise<number> {
  const pairs = await readFile('/proc/self/auxv')
  for (let at = 0; at + 16 <= pairs.length; at += 16)
    if (pairs.readBigUInt64LE(at) === keyOfPageSize) return Number(pairs.readBigUInt64LE(at + 8))
  throw new Error('cannot read the page size of the kernel')
}

const keyOfPageSize = 6n

/**
 * Truncates the files of pages to the length that CRIU's pagemaps require.
 * @returns the bytes that remain.
 * @throws AgentError DumpFailed when a file has fewer.
 */
export async function cutOff(images: string): Promise<number> {
  const sizes = new Map<string, number>()
  const pageBytes = await pageSize()
  const names = await readdir(images)
  for (const name of names.filter(isPagemap)) {
    const { pagesId, runs } = await parsePagemap(name, await readFile(join(images, name)))
    const pages = `pages-${pagesId}.img`
    const bytes = runs.reduce((sum, run) => sum + run.pages * pageBytes, 0)
    sizes.set(pages, (sizes.get(pages) ?? 0) + bytes)
  }
  let bytes = 0
  for (const name of names.filter(isPages)) {
    const path = join(images, name)
    const { size } = await stat(path)
    const needed = sizes.get(name) ?? 0
    if (size < needed) throw new AgentError('DumpFailed', `${name} lacks ${needed - size} bytes`)
    if (size > needed) await truncate(path, needed)
    bytes += needed
  }
  return bytes
}
