import { CheckpointError } from '../errors.ts'

/** Reads a byte stream piece by piece. A returned buffer is valid until the next call. */
export interface ByteReader {
  /** @throws CheckpointError Corrupt when the stream ends early. */
  exactly(count: number): Promise<Buffer>
  /** Returns between one and `most` bytes. @throws CheckpointError Corrupt when the stream has ended. */
  some(most: number): Promise<Buffer>
  /** @throws CheckpointError Corrupt when the stream has more bytes. */
  end(): Promise<void>
  close(): Promise<void>
}

const cutOff = () => new CheckpointError('Corrupt', 'the delta is truncated')

export function createByteReader(stream: AsyncIterable<Buffer>): ByteReader {
  const chunks = stream[Symbol.asyncIterator]()
  let rest: Buffer = Buffer.alloc(0)

  /** Waits until `rest` has bytes. Returns false at the end of the stream. */
  async function more(): Promise<boolean> {
    while (rest.length === 0) {
      const { done, value } = await chunks.next()
      if (done === true) return false
      rest = value
    }
    return true
  }

  function take(count: number): Buffer {
    const taken = rest.subarray(0, count)
    rest = rest.subarray(taken.length)
    return taken
  }

  return {
    async exactly(count) {
      if (rest.length >= count) return take(count)
      const parts: Buffer[] = []
      for (let left = count; left > 0; ) {
        if (!(await more())) throw cutOff()
        const part = take(left)
        parts.push(part)
        left -= part.length
      }
      return Buffer.concat(parts)
    },
    async some(most) {
      if (!(await more())) throw cutOff()
      return take(most)
    },
    async end() {
      if (await more()) throw new CheckpointError('Corrupt', 'the delta has data after its end')
    },
    async close() {
      await chunks.return?.()
    },
  }
}
