/**
 * Digests of large images of memory, page by page: the digest of a page that has not changed is known already. The
 * digest of such a file (`byPage`) is the SHA-256 of the digests of its pages. They lie beside the files.
 */
import { createHash, hash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import type { PageDigests } from './digest-memory.ts'
import { chunkBytes, writeDurably } from './files.ts'
import { pageDigestsName } from './manifest.ts'
import { digestBytes, digestBytesOf, isSystemError, pageBytes, type Stored } from './stored.ts'

export type { PageDigests } from './digest-memory.ts'

export interface PageDigester {
  /** True where a page begins. */
  readonly isAtPage: boolean
  update(bytes: Buffer): void
  /** Adds whole pages by their digests. Only where a page begins: see `isAtPage`. */
  addKnown(digests: Buffer): void
  /** Every byte of the file must have come. */
  finish(): { readonly sha256: string; readonly digests: Buffer }
}

/** Bytes of digests. */
const hashedAtOnce = 64 * 1024

/** @param size of the file: no more bytes may follow. */
export function createPageDigester(size: number): PageDigester {
  const digests = Buffer.alloc(digestBytesOf(size))
  const whole = createHash('sha256')
  let used = 0
  /** Bytes of `digests` that `whole` has. */
  let hashed = 0
  const page = Buffer.allocUnsafe(pageBytes)
  let filled = 0

  const add = (bytes: Buffer) => {
    note(hash('sha256', bytes, 'buffer'))
  }
  const note = (known: Buffer) => {
    used += known.copy(digests, used)
    if (used - hashed >= hashedAtOnce) hashSome()
  }
  // In pieces: this thread must not be busy for long at the end.
  const hashSome = () => {
    whole.update(digests.subarray(hashed, used))
    hashed = used
  }
  return {
    get isAtPage() {
      return filled === 0
    },
    update(bytes) {
      for (let at = 0; at < bytes.length; ) {
        if (filled === 0 && bytes.length - at >= pageBytes) {
          add(bytes.subarray(at, at + pageBytes))
          at += pageBytes
          continue
        }
        const part = bytes.copy(page, filled, at, Math.min(bytes.length, at + pageBytes - filled))
        at += part
        filled += part
        if (filled < pageBytes) continue
        add(page)
        filled = 0
      }
    },
    addKnown(known) {
      if (filled > 0 || known.length % digestBytes > 0) throw new Error('not whole pages')
      note(known)
    },
    finish() {
      if (filled > 0) add(page.subarray(0, filled))
      hashSome()
      return { sha256: whole.digest('hex'), digests }
    },
  }
}

/** Writes the digests of all files that have them, in the order of the manifest. */
export async function writePageDigests(dir: string, all: readonly Buffer[]): Promise<void> {
  if (all.length > 0) await writeDurably(join(dir, pageDigestsName), all)
}

/** Returns the digests of the pages of the file with this path; undefined: they are not known. */
export const digestsOfPath = (
  digests: PageDigests,
  { files }: Pick<Stored['manifest'], 'files'>,
  path: string,
): Buffer | undefined => digests.get(files.findIndex(file => file.path === path))

/** Returns the digests of whole pages of a file. */
export const digestsAt = (digests: Buffer, offset: number, length: number): Buffer =>
  digests.subarray((offset / pageBytes) * digestBytes, ((offset + length) / pageBytes) * digestBytes)

/** Pages from the first to before the last one, which are all the same in two files, or all different. */
export interface PagesInARow {
  readonly from: number
  readonly to: number
  readonly same: boolean
}

/** Most pages whose digests are compared at once. */
const stride = 128

/** Compares as many pages as the first list has. The second one may be shorter. */
export function* compareDigests(own: Buffer, theirs: Buffer): Generator<PagesInARow> {
  const pages = own.length / digestBytes
  const isSame = (from: number, to: number) =>
    own
      .subarray(from * digestBytes, to * digestBytes)
      .equals(theirs.subarray(from * digestBytes, to * digestBytes))
  let from = 0
  let same = true
  for (let page = 0; page < pages; ) {
    const end = Math.min(page + stride, pages)
    if (same && isSame(page, end)) {
      page = end
      continue
    }
    const isNow = isSame(page, page + 1)
    if (isNow !== same) {
      if (page > from) yield { from, to: page, same }
      from = page
      same = isNow
    }
    page += 1
  }
  if (pages > from) yield { from, to: pages, same }
}

/** Returns the digests of a generation: those in memory, or those that lie beside it. Missing or wrong ones are left out. */
export async function readPageDigests({
  dir,
  manifest,
  held,
}: Pick<Stored, 'dir' | 'manifest' | 'held'>): Promise<PageDigests> {
  const inMemory = held?.get()
  if (inMemory !== undefined) return inMemory
  const found = new Map<number, Buffer>()
  if (!manifest.files.some(({ byPage }) => byPage)) return found
  const all = await readFile(join(dir, pageDigestsName)).catch((error: unknown) => {
    if (isSystemError(error, 'ENOENT')) return Buffer.alloc(0)
    throw error
  })
  let at = 0
  for (const [index, { size, sha256, byPage }] of manifest.files.entries()) {
    if (!byPage) continue
    const digests = all.subarray(at, at + digestBytesOf(size))
    at += digestBytesOf(size)
    if ((await digestOf(digests)) === sha256) found.set(index, digests)
  }
  return found
}

/** Lets others run meanwhile. */
async function digestOf(bytes: Buffer): Promise<string> {
  const whole = createHash('sha256')
  for (let at = 0; at < bytes.length; at += chunkBytes) {
    whole.update(bytes.subarray(at, at + chunkBytes))
    await setImmediate()
  }
  return whole.digest('hex')
}
