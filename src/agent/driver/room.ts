/**
 * Files for pages are filled before the pod is stopped: memory that a tmpfs has to ask the kernel for costs more than to
 * copy something into it, and several times as much on a virtual machine that gives free memory back to its host. CRIU is
 * kept from emptying them first (native/preload/preload.c).
 */
import { type FileHandle, open, readdir, readFile, stat, truncate } from 'node:fs/promises'
import { join } from 'node:path'
import { parsePagemap } from '../../checkpoint/images/pagemap.ts'
import { noSpace } from '../../checkpoint/stored.ts'
import { AgentError } from '../errors.ts'

/** Of a file in the images of a container, and its size, bytes. */
export interface Expected {
  readonly name: string
  readonly size: number
}

export const isPages = (name: string): boolean => /^pages-\d+\.img$/.test(name)
const isPagemap = (name: string): boolean => /^pagemap-.*\.img$/.test(name)

const piece = Buffer.alloc(1024 * 1024)

/**
 * Makes files as large as they were the last time; others are left to CRIU.
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

/** Of this machine's memory, bytes: what the kernel tells every program in its auxiliary vector, pairs of a key and a value. */
export async function pageSize(): Promise<number> {
  const pairs = await readFile('/proc/self/auxv')
  for (let at = 0; at + 16 <= pairs.length; at += 16)
    if (pairs.readBigUInt64LE(at) === keyOfPageSize) return Number(pairs.readBigUInt64LE(at + 8))
  throw new Error('the kernel does not tell the size of its pages')
}

const keyOfPageSize = 6n

/**
 * Cuts off what CRIU did not need: there are as many pages as the maps of the processes say.
 * @returns what is left, bytes.
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
