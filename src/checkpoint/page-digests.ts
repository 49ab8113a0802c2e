/**
 * Digests of large images of memory, page by page: the digest of a page that has not changed is known already. The
 * digest of such a file (`byPage`) is the SHA-256 of the digests of its pages. They lie beside the files.
 */
import { hash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { writeDurably } from './files.ts'
import { type GenerationFile, pageDigestsName } from './manifest.ts'
import { digestBytes, digestBytesOf, isSystemError, pageBytes, type Stored } from './stored.ts'

export interface PageDigester {
  /** True where a page begins. */
  readonly isAtPage: boolean
  update(bytes: Buffer): void
  /** Adds whole pages by their digests. Only where a page begins. */
  addKnown(digests: Buffer): void
  finish(): { readonly sha256: string; readonly digests: Buffer }
}

/** @param size of the file: no more bytes may follow. */
export function createPageDigester(size: number): PageDigester {
  const digests = Buffer.alloc(digestBytesOf(size))
  let used = 0
  const page = Buffer.allocUnsafe(pageBytes)
  let filled = 0

  const add = (bytes: Buffer) => {
    hash('sha256', bytes, 'buffer').copy(digests, used)
    used += digestBytes
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
      used += known.copy(digests, used)
    },
    finish() {
      if (filled > 0) add(page.subarray(0, filled))
      return { sha256: hash('sha256', digests.subarray(0, used), 'hex'), digests }
    },
  }
}

/** Writes the digests of all files that have them, in the order of the manifest. */
export async function writePageDigests(dir: string, all: readonly Buffer[]): Promise<void> {
  if (all.length > 0) await writeDurably(join(dir, pageDigestsName), Buffer.concat(all))
}

/** The digests of the pages of files, by path. */
export type PageDigests = ReadonlyMap<string, Buffer>

/** Returns the digests that lie beside a generation. Those that are missing or wrong are left out. */
export async function readPageDigests({ dir, manifest }: Stored): Promise<PageDigests> {
  const found = new Map<string, Buffer>()
  const files: readonly GenerationFile[] = manifest.files.filter(({ byPage }) => byPage === true)
  if (files.length === 0) return found
  const all = await readFile(join(dir, pageDigestsName)).catch((error: unknown) => {
    if (isSystemError(error, 'ENOENT')) return Buffer.alloc(0)
    throw error
  })
  let at = 0
  for (const { path, size, sha256 } of files) {
    const digests = all.subarray(at, at + digestBytesOf(size))
    at += digestBytesOf(size)
    if (hash('sha256', digests, 'hex') === sha256) found.set(path, digests)
  }
  return found
}
