import { mkdir, open } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { CheckpointError, isCheckpointError } from '../errors.ts'
import { chunkBytes } from '../files.ts'
import type { Draft } from '../generation-store.ts'
import { type GenerationFile, type Manifest, slotName } from '../manifest.ts'
import { digestsAt, readPageDigests, writePageDigests } from '../page-digests.ts'
import { bytesOnDisk, digestBytesOf, noSpace, pageBytes, type Stored } from '../stored.ts'
import { type ByteReader, createByteReader } from './byte-reader.ts'
import { type CodecOptions, decompress } from './compress.ts'
import type { MoveOptions } from './moves.ts'
import { createOutput, type Output } from './output.ts'
import { createPatch, openSpare } from './patch.ts'
import { contentDigest, kinds, longestHeader, longestLiteral, magic, parseHeader } from './records.ts'
import { createTurns } from './turns.ts'
import { createWindowReader, type WindowReader } from './window-reader.ts'

export interface ApplyOptions extends CodecOptions, Pick<MoveOptions, 'copyPages'> {
  /** Called with the manifest before anything is written or given up for it; throws if the generation is not to be made. */
  readonly accept?: (manifest: Manifest) => void
  /** Lets other work of the process run; default: one turn of the event loop. */
  readonly giveWay?: () => Promise<void>
}

/**
 * Makes the generation that a stream of `encodeDelta` describes. It writes every file in full, or over a file of a generation that is
 * no longer needed, checks the file's size and digest against the manifest, and syncs it before it commits the draft. If anything
 * fails, it discards the draft.
 * The caller must keep `base` in place until then (`retain`).
 *
 * @throws CheckpointError DeltaBaseMissing, Corrupt, BadManifest, StoreFull, Superseded; the error of the stream; the
 * signal's reason.
 */
export async function applyDelta(
  stream: AsyncIterable<Buffer>,
  base: Stored | undefined,
  draft: Draft,
  options: ApplyOptions = {},
): Promise<Stored> {
  const { signal } = options
  let failed: { readonly error: unknown } | undefined
  const source = async function* () {
    // An exception raised at `yield` is our cancellation, not a stream error.
    let ours = false
    try {
      for await (const chunk of stream) {
        ours = true
        yield chunk
        ours = false
      }
    } catch (error) {
      if (!ours) failed = { error }
      throw error
    }
  }
  try {
    const input = createByteReader(decompress(source(), options))
    let received: Received
    try {
      received = await receive(input, base, draft, options)
    } finally {
      await input.close()
    }
    const { manifest, pageDigests } = received
    const { files, bytes: _, ...rest } = manifest
    return await draft.commit(rest, { files, pageDigests, ...(signal && { signal }) })
  } catch (error) {
    await draft.discard()
    signal?.throwIfAborted()
    // The stream's own error says more than the errors that its end caused.
    if (failed !== undefined) throw failed.error
    if (isCodecError(error)) throw new CheckpointError('Corrupt', 'the delta cannot be unpacked', error)
    if (isCheckpointError(error, 'NoSuchGeneration'))
      throw new CheckpointError('DeltaBaseMissing', error.message, error)
    throw noSpace(error)
  }
}

/** Errors of zstd, and of streams that end early. */
function isCodecError(error: unknown): boolean {
  const code = error instanceof Error && 'code' in error ? String(error.code) : ''
  return code.startsWith('ZSTD_') || code.startsWith('Z_') || code === 'ERR_STREAM_PREMATURE_CLOSE'
}

interface Received {
  readonly manifest: Manifest
  readonly pageDigests: ReadonlyMap<string, Buffer>
}

async function receive(
  input: ByteReader,
  base: Stored | undefined,
  draft: Draft,
  options: ApplyOptions,
): Promise<Received> {
  const header = await readHeader(input)
  const { manifest } = header
  if (slotName(manifest.slot) !== slotName(draft.slot) || manifest.generation !== draft.generation)
    throw new CheckpointError('Corrupt', 'the delta is for another generation than requested')
  if (
    header.base !== undefined &&
    (base === undefined || contentDigest(base.manifest) !== header.base.digest)
  )
    throw new CheckpointError(
      'DeltaBaseMissing',
      `the delta needs generation ${header.base.generation} of epoch ${header.base.epoch}, which is missing or differs here`,
    )
  options.accept?.(manifest)
  draft.reserve(bytesOnDisk(manifest.files))
  const past = header.base === undefined ? undefined : base
  const reader = past && (await openBase(past))
  const isLarge = manifest.files.some(({ byPage }) => byPage === true)
  const pageDigests = new Map<string, Buffer>()
  try {
    // The spare one is lost whatever becomes of this one.
    const spare =
      draft.needsSpare || (isLarge && past !== undefined) ? await openSpare(draft, manifest.files) : undefined
    const buffers = [Buffer.allocUnsafe(chunkBytes), Buffer.allocUnsafe(chunkBytes)] as const
    for (const file of manifest.files) {
      const path = join(draft.dir, file.path)
      await mkdir(dirname(path), { recursive: true, mode: 0o700 })
      const before = await spare?.take(file, path)
      const handle = await open(path, before === undefined ? 'wx' : 'r+', 0o600)
      try {
        const { size } = file
        const digest = file.byPage === true ? 'OfPages' : 'OfFile'
        const output =
          before === undefined
            ? createOutput(handle, { size, digest }, buffers)
            : await createPatch(handle, size, before, options)
        await receiveFile(input, file, output, reader, options)
        const written = await output.finish()
        if (written.size !== size || written.sha256 !== file.sha256)
          throw new CheckpointError('Corrupt', `${file.path} differs from its manifest`)
        if (written.digests !== undefined) pageDigests.set(file.path, written.digests)
        await handle.sync()
      } finally {
        await handle.close()
      }
    }
  } finally {
    await reader?.close()
  }
  if ((await input.exactly(1)).readUInt8() !== kinds.end)
    throw new CheckpointError('Corrupt', 'the delta has more files than its manifest')
  await input.end()
  await writePageDigests(draft.dir, [...pageDigests.values()])
  return { manifest, pageDigests }
}

async function readHeader(input: ByteReader) {
  if (!(await input.exactly(magic.length)).equals(magic))
    throw new CheckpointError('Corrupt', 'the delta has a wrong magic number')
  const length = (await input.exactly(4)).readUInt32LE()
  if (length > longestHeader) throw new CheckpointError('Corrupt', 'the header of the delta is too long')
  return parseHeader((await input.exactly(length)).toString())
}

interface Base extends WindowReader {
  /** Returns the digests of these pages; undefined: they are not known, or not whole pages. */
  digestsOf(file: number, offset: number, length: number): Buffer | undefined
}

async function openBase(base: Stored): Promise<Base> {
  const digests = await readPageDigests(base)
  return {
    ...createWindowReader(base),
    digestsOf(file, offset, length) {
      if (offset % pageBytes > 0 || length % pageBytes > 0) return undefined
      const all = digests.get(file)
      // The last page of a file may be shorter than the page that this digest would stand for.
      const isWithin = offset + length <= (base.manifest.files[file]?.size ?? 0)
      const known = isWithin && all ? digestsAt(all, offset, length) : undefined
      return known?.length === digestBytesOf(length) ? known : undefined
    },
  }
}

/** An archive has a member in 512 bytes at the least, which is a copy and a literal; memory has a record for a page. */
const mostRecords = ({ size }: GenerationFile): number => 1024 + size / 128

async function receiveFile(
  input: ByteReader,
  file: GenerationFile,
  output: Output,
  reader: Base | undefined,
  { signal, giveWay = setImmediate }: ApplyOptions,
): Promise<void> {
  let size = 0
  let records = 0
  const require = (bytes: number) => {
    size += bytes
    records += 1
    if (size > file.size)
      throw new CheckpointError('Corrupt', `${file.path} is longer than its manifest says`)
    if (records > mostRecords(file))
      throw new CheckpointError('Corrupt', `${file.path}: it has more records than an agent writes`)
  }
  const turn = createTurns(giveWay)
  for (;;) {
    signal?.throwIfAborted()
    const kind = (await input.exactly(1)).readUInt8()
    switch (kind) {
      case kinds.copy: {
        const head = await input.exactly(4 + 6 + 6)
        const index = head.readUInt32LE(0)
        const offset = head.readUIntLE(4, 6)
        const length = head.readUIntLE(10, 6)
        if (reader === undefined)
          throw new CheckpointError('Corrupt', `${file.path}: a copy record without a base`)
        require(length)
        if (length === 0) throw new CheckpointError('Corrupt', `${file.path}: an empty copy record`)
        for (let at = 0; at < length; ) {
          signal?.throwIfAborted()
          // Reads up to the end of a window of the base.
          const part = Math.min(length - at, chunkBytes - ((offset + at) % chunkBytes))
          await turn(part)
          const start = offset + at
          await output.copy(part, reader.digestsOf(index, start, part), {
            read: () => reader.read(index, start, part),
            file: () => reader.handle(index),
            at: start,
          })
          at += part
        }
        break
      }
      case kinds.literal: {
        const length = (await input.exactly(4)).readUInt32LE()
        if (length > longestLiteral)
          throw new CheckpointError('Corrupt', `${file.path}: a literal record is too long`)
        require(length)
        if (length === 0) throw new CheckpointError('Corrupt', `${file.path}: an empty literal record`)
        for (let left = length; left > 0; ) {
          const part = await input.some(left)
          await turn(part.length)
          await output.write(part)
          left -= part.length
        }
        break
      }
      case kinds.endOfFile:
        return
      default:
        throw new CheckpointError('Corrupt', `${file.path}: unknown record kind ${kind}`)
    }
  }
}
