import { CheckpointError } from '../errors.ts'

/** Takes a stream apart. What it returns is good until the next call. */
export interface ByteReader {
  /** @throws CheckpointError Corrupt when the stream ends before. */
  exactly(count: number): Promise<Buffer>
  /** At least one byte and at most `most`. @throws CheckpointError Corrupt when the stream ends before. */
  some(most: number): Promise<Buffer>
  /** @throws CheckpointError Corrupt when the stream goes on. */
  end(): Promise<void>
  close(): Promise<void>
}

const cutOff = () => new CheckpointError('Corrupt', 'the delta is cut off')

export function createByteReader(stream: AsyncIterable<Buffer>): ByteReader {
  const chunks = stream[Symbol.asyncIterator]()
  let rest: Buffer = Buffer.alloc(0)

  /** Puts the next bytes that there are into `rest`; false at the end. */
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
      if (await more()) throw new CheckpointError('Corrupt', 'the delta goes on after its end')
    },
    async close() {
      await chunks.return?.()
    },
  }
}
