import { Readable, type Transform } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { constants, createZstdCompress, createZstdDecompress } from 'node:zlib'

/** Output at a time, bytes: each is a trip to the thread pool. */
const chunkSize = 512 * 1024

/** zstd at its fastest: between nodes of one cluster a byte saved is worth less than a cycle. */
const level = 1

export interface CodecOptions {
  readonly signal?: AbortSignal
  /** Told the bytes of each buffer on its way in and out, all of which are garbage soon after. */
  readonly onBuffer?: (bytes: number) => void
}

/** Compresses while it is read, not further ahead than a few pieces. Ending early ends the source, too. */
export const compress = (source: AsyncIterable<Buffer>, options: CodecOptions = {}): AsyncGenerator<Buffer> =>
  through(
    source,
    createZstdCompress({
      chunkSize,
      params: { [constants.ZSTD_c_compressionLevel]: level, [constants.ZSTD_c_checksumFlag]: 1 },
    }),
    options,
  )

/** The reverse. @throws what zlib throws on a stream that is none; what the source throws; an AbortError. */
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
  // A failure reaches the reader through the codec; without this it would also be reported as nobody's.
  fed.catch(() => undefined)
  try {
    yield* counted(codec)
    await fed
  } finally {
    // Not waited for: the source may hang in a read that will not end.
    codec.destroy()
  }
}
