import { type ClientHttp2Stream, constants } from 'node:http2'

/** The stream or its connection ended before the answer did. */
export class StreamBroken extends Error {}

/**
 * Returns the contents of a stream. Call it when the stream opens; read at any time. The stream's own iterator takes an
 * answer that has arrived completely before the first read for a broken one (Node 24).
 * @throws StreamBroken when the stream ends before its end
 */
export function bodyOf(stream: ClientHttp2Stream): AsyncGenerator<Buffer, void> {
  const seen: { ended: boolean; closed: boolean; failure?: Error } = { ended: false, closed: false }
  let wake = () => {}
  stream.on('readable', () => wake())
  stream.on('end', () => {
    seen.ended = true
    wake()
  })
  stream.on('error', error => {
    seen.failure = error
    wake()
  })
  stream.on('close', () => {
    seen.closed = true
    wake()
  })

  return (async function* () {
    for (;;) {
      const { promise, resolve } = Promise.withResolvers<void>()
      // Before the read, so that no event is lost between the read and the wait.
      wake = resolve
      const chunk: Buffer | null = stream.read()
      if (chunk !== null) yield chunk
      else if (seen.failure) throw new StreamBroken(seen.failure.message, { cause: seen.failure })
      // A broken connection may look like an end.
      else if (seen.ended && stream.rstCode === constants.NGHTTP2_NO_ERROR && !stream.aborted) return
      else if (seen.ended || seen.closed) throw new StreamBroken(`the stream was reset (${stream.rstCode})`)
      else await promise
    }
  })()
}
