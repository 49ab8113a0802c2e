import { Readable, type Transform } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { constants, createZstdCompress, createZstdDecompress } from 'node:zlib'

/** Size of an output buffer, bytes. Each buffer costs one round trip to the thread pool. */
const chunkSize = 512 * 1024

/** zstd's fastest level: between nodes of one cluster a saved byte is worth less than a CPU cycle. */
const level = 1

export interface CodecOptions {
  readonly signal?: AbortSignal
  /** Called with the size (bytes) of each input and output buffer. All these buffers become garbage soon after. */
  readonly onBuffer?: (bytes: number) => void
}

/** Compresses on demand, at most a few buffers ahead of the reader. Returning early also ends the source. */
export const compress = (source: AsyncIterable<Buffer>, options: CodecOptions = {}): AsyncGenerator<Buffer> =>
  through(
    source,
    createZstdCompress({
      chunkSize,
      params: { [constants.ZSTD_c_compressionLevel]: level, [constants.ZSTD_c_checksumFlag]: 1 },
    }),
    options,
  )

/** Decompresses. @throws zlib's errors on other data than zstd; the error of the source; an AbortError. */
export const decompress = (
  source: AsyncIterable<Buffer>,
  options: CodecOptions = {},
): AsyncGenerator<Buffer> => through(source, createZstdDecompress({ chunkSize }), options)

async function* through(
  source: AsyncIterable<Buffer>,
  codec: Transform,
  { signal, onBuffer }: CodecOptions,
): AsyncGenerator<Buffer> {
  const counted = async function* (buffers: AsyncIterable<Buffer>) {
    for await (const buffer of buffers) {
      onBuffer?.(buffer.length)
      yield buffer
    }
  }
  const bytes = Readable.from(counted(source), { objectMode: false, highWaterMark: chunkSize })
  const fed = pipeline(bytes, codec, signal === undefined ? {} : { signal })
  // A failure reaches the reader through the codec. Without this, Node would also report an unhandled rejection.
  fed.catch(() => undefined)
  try {
    yield* counted(codec)
    await fed
  } finally {
    // Not awaited: the source may hang in a read that never ends.
    codec.destroy()
  }
}
