/** Pages that a file takes from another one. They wait until all are known, because a program copies many of them sooner. */
import { readSync, writeSync } from 'node:fs'
import type { FileHandle } from 'node:fs/promises'
import { setImmediate } from 'node:timers/promises'
import { CheckpointError } from '../errors.ts'
import { type CopyPages, mostRanges, type PageRange } from '../page-program.ts'
import { createTurns } from './turns.ts'

export interface MoveOptions {
  /** Default: this process copies pages. */
  readonly copyPages?: CopyPages | undefined
  readonly signal?: AbortSignal | undefined
}

export interface Moves {
  /** The bytes at `first` in the other file are to be at `second` here. */
  add(from: FileHandle, range: PageRange): Promise<void>
  /** @throws CheckpointError Corrupt if the other file ends early; the signal's reason. */
  finish(): Promise<void>
}

const bufferBytes = 256 * 1024

export function createMoves(to: FileHandle, { copyPages, signal }: MoveOptions): Moves {
  const turn = createTurns(setImmediate)
  let buffer: Buffer | undefined
  let from: FileHandle | undefined
  let ranges: { first: number; second: number; length: number }[] = []

  async function finish() {
    const all = ranges
    ranges = []
    if (from === undefined || all.length === 0) return
    if (await copyPages?.(from, to, all, signal)) return
    buffer ??= Buffer.allocUnsafe(bufferBytes)
    for (const { first, second, length } of all)
      for (let done = 0; done < length; ) {
        signal?.throwIfAborted()
        const part = Math.min(length - done, bufferBytes)
        // Without a round trip to the thread pool, which would take longer than to copy a page in memory.
        const read = readSync(from.fd, buffer, 0, part, first + done)
        if (read === 0) throw new CheckpointError('Corrupt', 'a file of the base is truncated')
        writeAllSync(to, buffer.subarray(0, read), second + done)
        done += read
        await turn(read)
      }
  }

  return {
    finish,
    async add(file, range) {
      if (file !== from || ranges.length >= mostRanges) await finish()
      from = file
      const last = ranges.at(-1)
      const continues =
        last !== undefined &&
        last.first + last.length === range.first &&
        last.second + last.length === range.second
      if (continues) last.length += range.length
      else ranges.push({ ...range })
    },
  }
}

export function writeAllSync({ fd }: FileHandle, bytes: Buffer, at: number): void {
  for (let from = 0; from < bytes.length; ) from += writeSync(fd, bytes, from, bytes.length - from, at + from)
}
