import { Readable, type Transform } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { constants, createZstdCompress, createZstdDecompress } from 'node:zlib'

/** Output at a time, bytes: each is a trip to the thread pool. */
const chunkSize = 512 * 1024

/** zstd at its fastest: between nodes of one cluster a byte saved is worth less than a cycle. */
const level = 1

/** Compresses while it is read, not further ahead than a few pieces. Ending early ends the source, too. */
export const compress = (source: AsyncIterable<Buffer>, signal?: AbortSignal): AsyncGenerator<Buffer> =>
  through(
    source,
    createZstdCompress({
      chunkSize,
      params: { [constants.ZSTD_c_compressionLevel]: level, [constants.ZSTD_c_checksumFlag]: 1 },
    }),
    signal,
  )

/** The reverse. @throws what zlib throws on a stream that is none; what the source throws; an AbortError. */
export const decompress = (source: AsyncIterable<Buffer>, signal?: AbortSignal): AsyncGenerator<Buffer> =>
  through(source, createZstdDecompress({ chunkSize }), signal)

async function* through(
  source: AsyncIterable<Buffer>,
  codec: Transform,
  signal: AbortSignal | undefined,
): AsyncGenerator<Buffer> {
  const bytes = Readable.from(source, { objectMode: false, highWaterMark: chunkSize })
  const fed = pipeline(bytes, codec, signal === undefined ? {} : { signal })
  // A failure reaches the reader through the codec; without this it would also be reported as nobody's.
  fed.catch(() => undefined)
  try {
    for await (const chunk of codec) yield chunk as Buffer
    await fed
  } finally {
    // Not waited for: the source may hang in a read that will not end.
    codec.destroy()
  }
}
