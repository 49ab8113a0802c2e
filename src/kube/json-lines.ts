/** Parses newline-delimited JSON from chunks that break anywhere. */

/** A longer line is rejected as garbage. Objects are at most a few MB. */
const maxLineBytes = 64 * 1024 * 1024
const newline = 0x0a

/**
 * Yields each line parsed. Chunks may break in the middle of a line or of a UTF-8 sequence: only bytes are joined, and
 * a newline byte never occurs inside a sequence.
 * @throws SyntaxError for a line that is not JSON, or when the stream ends in the middle of one.
 */
export async function* jsonLines(chunks: AsyncIterable<Buffer>): AsyncGenerator<unknown, void, undefined> {
  let pending: Buffer[] = []
  let pendingBytes = 0
  for await (const chunk of chunks) {
    let start = 0
    for (let end = chunk.indexOf(newline); end >= 0; end = chunk.indexOf(newline, start)) {
      const rest = chunk.subarray(start, end)
      const line = pending.length === 0 ? rest : Buffer.concat([...pending, rest])
      pending = []
      pendingBytes = 0
      start = end + 1
      if (line.length > 0) yield JSON.parse(line.toString('utf8'))
    }
    if (start < chunk.length) {
      pending.push(chunk.subarray(start))
      pendingBytes += chunk.length - start
      if (pendingBytes > maxLineBytes) throw new SyntaxError(`a line of more than ${maxLineBytes} bytes`)
    }
  }
  if (pendingBytes > 0) throw new SyntaxError('the stream ended in the middle of a line')
}
