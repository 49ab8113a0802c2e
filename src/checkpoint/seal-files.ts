/** Makes the files of a directory those of a generation: private, on disk, and with digests. */
import { type FileHandle, lstat, open } from 'node:fs/promises'
import { join } from 'node:path'
import { isPages, type Part, planPages, smallestCompared } from './delta/plan.ts'
import { createWindowReader, type WindowReader } from './delta/window-reader.ts'
import { digestCompared, rangesOf } from './digest-compared.ts'
import { CheckpointError, isCheckpointError } from './errors.ts'
import { chunksOf, hashAndSync, privateTree, syncDirectory } from './files.ts'
import { type GenerationFile, isGenerationPath, pageDigestsName } from './manifest.ts'
import {
  createPageDigester,
  digestsAt,
  type PageDigester,
  type PageDigests,
  readPageDigests,
  writePageDigests,
} from './page-digests.ts'
import type { ComparePages } from './page-program.ts'
import { bytesOnDisk, digestBytesOf, pageBytes, type Stored } from './stored.ts'

export interface SealOptions {
  /** Files whose writer has synced them and vouches for their digests; all others are read. */
  readonly known: readonly GenerationFile[]
  /** The digests of the pages of files that are not read, by path; those of `known` files may be missing. */
  readonly pageDigests?: ReadonlyMap<string, Buffer> | undefined
  /** Called with the bytes on disk, before anything is read. */
  readonly reserve: (bytes: number) => void
  /** Large images of memory get digests by page. */
  readonly byPage: boolean
  /** A generation in which most pages are the same; it must stay in place. */
  readonly base: Stored | undefined
  /** Default: this process compares pages. */
  readonly comparePages?: ComparePages | undefined
  readonly signal: AbortSignal | undefined
}

/** The digests of three generations may be in the memory of the agent at once, beside those that it holds: 8 MiB for each GiB. */
const largestByPage = 8 * 2 ** 30

interface Sealed {
  readonly files: readonly GenerationFile[]
  readonly bytes: number
  /** Undefined: those of a file that the caller vouches for are not known. */
  readonly digests: PageDigests | undefined
}

/**
 * Flushes everything in a directory to disk and lists it.
 * @throws CheckpointError BadDraft; the error of `reserve`; the signal's reason.
 */
export async function sealFiles(dir: string, options: SealOptions): Promise<Sealed> {
  const { known, pageDigests, reserve, byPage, signal } = options
  const tree = await privateTree(dir)
  const vouched = new Map(known.map(file => [file.path, file]))
  const hasDigests = known.some(({ byPage }) => byPage)
  const found = await sizesOf(
    dir,
    tree.files.filter(path => !hasDigests || path !== pageDigestsName),
  )
  for (const { path, size } of known)
    if (found.find(file => file.path === path)?.size !== size)
      throw new CheckpointError('BadDraft', `${path} has another size than its manifest says`)
  const isByPage = ({ path, size }: Sized) =>
    vouched.get(path)?.byPage === true ||
    (byPage && !vouched.has(path) && isPages.test(path) && size >= smallestCompared && size <= largestByPage)
  reserve(bytesOnDisk(found.map(file => (isByPage(file) ? { ...file, byPage: true } : file))))
  const pages = found.filter(file => isByPage(file) && !vouched.has(file.path))
  await using digester = await createPagesDigester(dir, found, pages, options)
  const files: GenerationFile[] = []
  for (const file of found)
    files.push(
      vouched.get(file.path) ??
        (pages.includes(file)
          ? await digester.digest(file, signal)
          : { path: file.path, ...(await hashAndSync(join(dir, file.path), signal)) }),
    )
  await writePageDigests(dir, [...digester.ofPath.values()])
  for (const directory of tree.directories.toReversed()) await syncDirectory(join(dir, directory))
  const all = new Map([...(pageDigests ?? []), ...digester.ofPath])
  const digests = new Map<number, Buffer>()
  for (const [index, { path, size, byPage }] of files.entries()) {
    const ofPages = byPage ? digestsIn(all, { path, size }) : undefined
    if (ofPages !== undefined) digests.set(index, ofPages)
  }
  const isComplete = files.every(({ byPage }, index) => !byPage || digests.has(index))
  return {
    files,
    bytes: files.reduce((sum, file) => sum + file.size, 0),
    digests: isComplete ? digests : undefined,
  }
}

interface Sized {
  readonly path: string
  readonly size: number
}

/** Returns the digests of the pages of a file; undefined if they are missing, or those of a file of another size. */
function digestsIn(all: ReadonlyMap<string, Buffer>, { path, size }: Sized): Buffer | undefined {
  const ofPages = all.get(path)
  return ofPages?.length === digestBytesOf(size) ? ofPages : undefined
}

async function sizesOf(dir: string, paths: readonly string[]): Promise<readonly Sized[]> {
  const found: Sized[] = []
  for (const path of paths) {
    if (!isGenerationPath(path))
      throw new CheckpointError(
        'BadDraft',
        `${JSON.stringify(path)} is not a valid name for a file of a generation`,
      )
    found.push({ path, size: (await lstat(join(dir, path))).size })
  }
  return found
}

/** The generation before, as far as its digests are known. */
interface Before {
  readonly plan: ReadonlyMap<string, readonly Part[]>
  readonly reader: WindowReader
  readonly digests: PageDigests
}

async function createPagesDigester(
  dir: string,
  found: readonly Sized[],
  pages: readonly Sized[],
  { base, pageDigests = new Map(), comparePages }: Pick<SealOptions, 'base' | 'pageDigests' | 'comparePages'>,
) {
  const known = (file: Sized) => digestsIn(pageDigests, file)
  const before = pages.every(known) ? undefined : await knownOf(dir, found, base)
  const ofPath = new Map<string, Buffer>()
  return {
    /** The digests of the pages of all files digested so far. */
    ofPath,
    async digest(sized: Sized, signal: AbortSignal | undefined): Promise<GenerationFile> {
      const { path, size } = sized
      const file = await open(join(dir, path), 'r')
      try {
        const digester = createPageDigester(size)
        const ofPages = known(sized)
        const parts = before?.plan.get(path)
        if (ofPages !== undefined) digester.addKnown(ofPages)
        const read =
          ofPages !== undefined
            ? size
            : parts !== undefined && before !== undefined
              ? ((await digestTold(file, parts, { ...before, comparePages }, digester, signal)) ??
                (await digestChanges(file, parts, before, digester, signal)))
              : await digestAll(file, digester, signal)
        if (read !== size) throw new CheckpointError('BadDraft', `${path} changes while it is read`)
        await file.sync()
        const result = digester.finish()
        ofPath.set(path, result.digests)
        return { path, size, sha256: result.sha256, byPage: true }
      } finally {
        await file.close()
      }
    },
    [Symbol.asyncDispose]: async () => before?.reader.close(),
  }
}

async function knownOf(
  dir: string,
  files: readonly Sized[],
  base: Stored | undefined,
): Promise<Before | undefined> {
  if (base === undefined) return undefined
  const digests = await readPageDigests(base)
  if (digests.size === 0) return undefined
  return {
    plan: await planPages(base, { dir, files }),
    reader: createWindowReader(base),
    digests,
  }
}

/** @returns the number of bytes. */
async function digestAll(
  file: FileHandle,
  digester: PageDigester,
  signal: AbortSignal | undefined,
): Promise<number> {
  let size = 0
  for await (const chunk of chunksOf(file)) {
    signal?.throwIfAborted()
    digester.update(chunk)
    size += chunk.length
  }
  return size
}

/**
 * The same as `digestChanges`, with pages that a program of the node has compared.
 * @returns undefined, and has digested nothing, if it cannot compare them.
 */
async function digestTold(
  file: FileHandle,
  parts: readonly Part[],
  { reader, digests, comparePages }: Before & Pick<SealOptions, 'comparePages'>,
  digester: PageDigester,
  signal: AbortSignal | undefined,
): Promise<number | undefined> {
  const ranged = comparePages && rangesOf(parts, digests)
  if (ranged === undefined) return undefined
  const before = await orNothing(() => reader.handle(ranged.file))
  const same = before && (await comparePages?.(file, before, ranged.ranges, signal))
  return same && (await digestCompared(file, ranged, same, digester, signal))
}

/**
 * Compares the pages with those of the generation before, and digests those that differ.
 * @returns the number of bytes.
 */
async function digestChanges(
  file: FileHandle,
  parts: readonly Part[],
  { reader, digests }: Before,
  digester: PageDigester,
  signal: AbortSignal | undefined,
): Promise<number> {
  let size = 0
  let index = 0
  /** Bytes of the current part that are digested. */
  let done = 0
  for await (const chunk of chunksOf(file)) {
    signal?.throwIfAborted()
    size += chunk.length
    for (let from = 0; from < chunk.length; ) {
      const { length, like } = parts[index] ?? { length: Number.POSITIVE_INFINITY }
      const bytes = chunk.subarray(from, from + length - done)
      const known = like && digests.get(like.file)
      const offset = (like?.offset ?? 0) + done
      const there =
        like && known && (await orNothing(() => readPart(reader, like.file, offset, bytes.length)))
      const isWhole = digester.isAtPage && offset % pageBytes === 0 && bytes.length % pageBytes === 0
      if (there === undefined || known === undefined || !isWhole) digester.update(bytes)
      else addPages(bytes, there, digestsAt(known, offset, bytes.length), digester)
      from += bytes.length
      done += bytes.length
      if (done === length) {
        index += 1
        done = 0
      }
    }
  }
  return size
}

const readPart = async (
  reader: WindowReader,
  file: number,
  offset: number,
  length: number,
): Promise<Buffer> => reader.peek(file, offset, length) ?? (await reader.read(file, offset, length))

/** The generation before may be damaged: then its pages count as changed. */
async function orNothing<T>(ask: () => Promise<T>): Promise<T | undefined> {
  try {
    return await ask()
  } catch (error) {
    if (isCheckpointError(error, 'Corrupt', 'NoSuchGeneration')) return undefined
    throw error
  }
}

/** Adds whole pages. @param known the digests of the pages `there`. */
function addPages(bytes: Buffer, there: Buffer, known: Buffer, digester: PageDigester): void {
  if (bytes.equals(there)) {
    digester.addKnown(known)
    return
  }
  for (let at = 0; at < bytes.length; at += pageBytes) {
    const end = at + pageBytes
    if (bytes.compare(there, at, end, at, end) === 0) digester.addKnown(digestsAt(known, at, pageBytes))
    else digester.update(bytes.subarray(at, end))
  }
}
