import { open } from 'node:fs/promises'
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { CheckpointError } from '../errors.ts'
import { chunkBytes } from '../files.ts'
import { compareDigests, digestsAt, type PageDigests, readPageDigests } from '../page-digests.ts'
import { pageBytes, type Stored } from '../stored.ts'
import { type CodecOptions, compress } from './compress.ts'
import { type Part, planDelta } from './plan.ts'
import { contentDigest, createRecordWriter, formatHeader, kinds, type RecordWriter } from './records.ts'
import { createWindowReader, type WindowReader } from './window-reader.ts'

/**
 * Encodes everything that a node with `base` needs to make `next`; without a base, all of `next`. It encodes on demand,
 * a chunk at a time, so it never runs ahead of its reader; returning early closes all files. The caller must keep both
 * generations in place until then (`retain`).
 *
 * @throws CheckpointError Corrupt when a file is shorter than its manifest says; the signal's reason.
 */
export async function* encodeDelta(
  base: Stored | undefined,
  next: Stored,
  options: CodecOptions = {},
): AsyncGenerator<Buffer> {
  const { signal } = options
  try {
    yield* compress(records(base, next, signal), options)
  } catch (error) {
    signal?.throwIfAborted()
    throw error
  }
}

async function* records(
  base: Stored | undefined,
  next: Stored,
  signal: AbortSignal | undefined,
): AsyncGenerator<Buffer> {
  signal?.throwIfAborted()
  yield formatHeader({
    manifest: next.manifest,
    ...(base === undefined
      ? {}
      : {
          base: {
            epoch: base.manifest.epoch,
            generation: base.manifest.generation,
            digest: contentDigest(base.manifest),
          },
        }),
  })
  const plan = base === undefined ? undefined : await planDelta(base, next)
  const digests = base === undefined ? undefined : await loadDigests(base, next)
  const reader = base === undefined ? undefined : createWindowReader(base)
  const own = createWindowReader(next)
  const writer = createRecordWriter()
  try {
    for (const [index, file] of next.manifest.files.entries()) {
      const parts = plan?.get(file.path) ?? [{ length: file.size }]
      const path = join(next.dir, file.path)
      const byDigests = digests?.sideBySide(index, parts)
      const steps =
        byDigests === undefined
          ? encodeFile(path, parts, reader, writer)
          : encodePages(index, parts, byDigests, own, writer)
      for await (const _ of steps) {
        signal?.throwIfAborted()
        yield* writer.take()
      }
      writer.mark(kinds.endOfFile)
    }
    writer.mark(kinds.end)
    yield* writer.take(true)
  } finally {
    await own.close()
    await reader?.close()
  }
}

/** The digests of the pages of one file, and those of the base. */
interface SideBySide {
  readonly own: Buffer
  readonly ofBase: PageDigests
}

/** Loads the digests of the pages of both generations. */
async function loadDigests(base: Stored, next: Stored) {
  const digests = await readPageDigests(next)
  const ofBase = digests.size === 0 ? digests : await readPageDigests(base)
  return {
    /** Undefined unless digests can take the place of a comparison of bytes. */
    sideBySide(file: number, parts: readonly Part[]): SideBySide | undefined {
      const own = digests.get(file)
      const isWhole = ({ length, like }: Part) =>
        length % pageBytes === 0 &&
        (like === undefined || (like.offset % pageBytes === 0 && ofBase.has(like.file)))
      return own !== undefined && parts.every(part => part.like?.certain !== true && isWhole(part))
        ? { own, ofBase }
        : undefined
    },
  }
}

/** Runs of pages between two turns of the event loop. */
const runsAtOnce = 8192

/** Writes the records of a file whose pages are compared by their digests, and yields now and then. */
async function* encodePages(
  file: number,
  parts: readonly Part[],
  digests: SideBySide,
  reader: WindowReader,
  writer: RecordWriter,
): AsyncGenerator<void> {
  let at = 0
  let runs = 0
  for (const part of parts)
    for (const { length, from } of runsOf(part, at, digests)) {
      runs += 1
      if (runs % runsAtOnce === 0) {
        await setImmediate()
        yield
      }
      if (from !== undefined) writer.copy(from.file, from.offset, length)
      else
        for (let done = 0; done < length; ) {
          // Up to the end of a window: most runs are a page or two.
          const most = Math.min(length - done, chunkBytes - ((at + done) % chunkBytes))
          const known = reader.peek(file, at + done, most)
          writer.literal(known ?? (await reader.read(file, at + done, most)))
          if (known === undefined) yield
          done += most
        }
      at += length
    }
}

interface Run {
  readonly length: number
  /** Where the base has the same bytes; absent: nowhere. */
  readonly from?: { readonly file: number; readonly offset: number }
}

/** Divides a part that begins at this offset into runs of pages that the base has, and of others. */
function* runsOf({ length, like }: Part, at: number, { own, ofBase }: SideBySide): Generator<Run> {
  const theirs = like && ofBase.get(like.file)
  if (like === undefined || theirs === undefined) return yield { length }
  const rows = compareDigests(digestsAt(own, at, length), digestsAt(theirs, like.offset, length))
  for (const { from, to, same } of rows)
    yield {
      length: (to - from) * pageBytes,
      ...(same && { from: { file: like.file, offset: like.offset + from * pageBytes } }),
    }
}

/** Writes the records of one file, and yields after each chunk. */
async function* encodeFile(
  path: string,
  parts: readonly Part[],
  reader: WindowReader | undefined,
  writer: RecordWriter,
): AsyncGenerator<void> {
  const [whole] = parts
  if (parts.length === 1 && whole?.like?.certain === true) {
    writer.copy(whole.like.file, whole.like.offset, whole.length)
    return
  }
  const file = await open(path, 'r')
  try {
    const buffers = [Buffer.allocUnsafe(chunkBytes), Buffer.allocUnsafe(chunkBytes)] as const
    const size = parts.reduce((sum, part) => sum + part.length, 0)
    const read = (at: number) => {
      const target = buffers[(at / chunkBytes) % 2 === 0 ? 0 : 1]
      return file.read(target, 0, Math.min(chunkBytes, size - at), at)
    }
    let index = 0
    /** Bytes of the current part that are already encoded. */
    let done = 0
    let coming = size > 0 ? read(0) : undefined
    for (let at = 0; coming !== undefined; ) {
      const { bytesRead, buffer } = await coming
      if (bytesRead !== Math.min(chunkBytes, size - at))
        throw new CheckpointError('Corrupt', 'a file is shorter than its manifest says')
      at += bytesRead
      // Read ahead: the next chunk loads while this one is compared.
      coming = at < size ? read(at) : undefined
      for (let from = 0; from < bytesRead; ) {
        const part = parts[index]
        if (part === undefined) break
        const length = Math.min(part.length - done, bytesRead - from)
        const bytes = buffer.subarray(from, from + length)
        if (part.like === undefined || reader === undefined) writer.literal(bytes)
        else {
          const offset = part.like.offset + done
          const there =
            reader.peek(part.like.file, offset, length) ?? (await reader.read(part.like.file, offset, length))
          compare(bytes, there, part.like.file, offset, writer)
        }
        from += length
        done += length
        if (done === part.length) {
          index += 1
          done = 0
        }
      }
      yield
    }
  } finally {
    await file.close()
  }
}

/** Writes runs of equal blocks as copies, and runs of different blocks as literals. */
function compare(bytes: Buffer, there: Buffer, file: number, offset: number, writer: RecordWriter) {
  if (bytes.equals(there)) {
    writer.copy(file, offset, bytes.length)
    return
  }
  let start = 0
  let equal: boolean | undefined
  const flush = (end: number) => {
    if (equal === true) writer.copy(file, offset + start, end - start)
    else if (end > start) writer.literal(bytes.subarray(start, end))
    start = end
  }
  for (let at = 0; at < bytes.length; at += pageBytes) {
    const end = Math.min(at + pageBytes, bytes.length)
    const same = bytes.compare(there, at, end, at, end) === 0
    if (same !== equal) flush(at)
    equal = same
  }
  flush(bytes.length)
}
