/** Compares and copies pages of files by a program of the node: to read them into this process would copy all of them. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import type { FileHandle } from 'node:fs/promises'
import { unlessAborted } from '../kube/abort.ts'
import type { Log } from '../kube/log.ts'
import { isSystemError, pageBytes } from './stored.ts'

/** Bytes of two files, by their offsets. All are multiples of a page. */
export interface PageRange {
  readonly first: number
  readonly second: number
  readonly length: number
}

/**
 * Compares the pages of these ranges.
 * @returns a byte for each page, in the order of the ranges: 1, both files have the same there; undefined: this node cannot tell.
 * @throws the signal's reason.
 */
export type ComparePages = (
  first: FileHandle,
  second: FileHandle,
  ranges: readonly PageRange[],
  signal: AbortSignal | undefined,
) => Promise<Buffer | undefined>

/**
 * Writes the pages of these ranges of the first file over those of the second one. No two ranges overlap in the second file.
 * @returns false: this node cannot, or not all of them.
 * @throws the signal's reason.
 */
export type CopyPages = (
  first: FileHandle,
  second: FileHandle,
  ranges: readonly PageRange[],
  signal: AbortSignal | undefined,
) => Promise<boolean>

export interface PageProgram {
  readonly comparePages: ComparePages
  readonly copyPages: CopyPages
}

/** With more ranges than this, this process compares pages: that costs less than the list of them. Copies are made in lists of so many. */
export const mostRanges = 16_384

const rangeBytes = 24
/** Bytes of the number of pages that were copied. */
const countBytes = 8
/** Characters of what the program says of its failure. */
const mostSaid = 1_000

/** A program is not worth its start for less, bytes. */
const worthwhile = 16 * 1024 * 1024

/**
 * @param programs directory of the node's programs, with `pages`.
 * @param least bytes for which it is started.
 */
export function createPageProgram(programs: string, log: Pick<Log, 'warn'>, least = worthwhile): PageProgram {
  let isThere = true
  let copying: Promise<void> = Promise.resolve()
  const isWorthIt = (ranges: readonly PageRange[]) => isThere && bytesOf(ranges) >= least
  const unlessFailed = async (
    verb: 'compare' | 'copy',
    files: readonly [FileHandle, FileHandle],
    ranges: readonly PageRange[],
    signal: AbortSignal | undefined,
  ): Promise<Buffer | undefined> => {
    signal?.throwIfAborted()
    if (!isWorthIt(ranges)) return undefined
    try {
      const answerBytes = verb === 'compare' ? bytesOf(ranges) / pageBytes : countBytes
      return await run(`${programs}/pages`, verb, files, { ranges, answerBytes, signal })
    } catch (error) {
      signal?.throwIfAborted()
      isThere = !isSystemError(error, 'ENOENT', 'EACCES')
      // This process does it itself.
      log.warn({ err: error, verb, again: isThere }, 'pages are compared and copied slowly')
      return undefined
    }
  }
  return {
    comparePages: (first, second, ...more) => unlessFailed('compare', [first, second], ...more),
    async copyPages(first, second, ranges, signal) {
      if (!isWorthIt(ranges)) return false
      // One at a time: it has as many threads as there are processors, and many slots may receive memory at once.
      const before = copying
      const over = Promise.withResolvers<void>()
      copying = over.promise
      try {
        await unlessAborted(before, signal)
        const count = await unlessFailed('copy', [first, second], ranges, signal)
        // If a part of the list has not reached the program, that is no failure of it.
        return count?.readBigUInt64LE() === BigInt(bytesOf(ranges) / pageBytes)
      } finally {
        before.then(over.resolve)
      }
    },
  }
}

/** @throws Error if it does not start, or fails. */
async function run(
  program: string,
  verb: string,
  [first, second]: readonly [FileHandle, FileHandle],
  {
    ranges,
    answerBytes,
    signal,
  }: {
    readonly ranges: readonly PageRange[]
    readonly answerBytes: number
    readonly signal: AbortSignal | undefined
  },
): Promise<Buffer> {
  const answer = Buffer.alloc(answerBytes)
  const input = written(ranges)
  const child = spawn(program, [verb, '3', '4'], {
    stdio: ['pipe', 'pipe', 'pipe', first.fd, second.fd],
    env: {},
    ...(signal && { signal, killSignal: 'SIGKILL' }),
  })
  const ended = once(child, 'close')
  // The `await` below reports a failure. Without this, Node would also report an unhandled rejection.
  ended.catch(() => undefined)
  const { stdin, stdout, stderr } = child
  // Without a free descriptor there are none, and the program has not started.
  if (!stdin || !stdout || !stderr) throw new Error('pages has no pipes')
  // The failure of the program says more than that of a pipe to it.
  stdin.on('error', () => undefined)
  stdin.end(input)
  let length = 0
  stdout.on('data', (chunk: Buffer) => {
    chunk.copy(answer, length)
    length += chunk.length
  })
  let said = ''
  stderr.setEncoding('utf8').on('data', (text: string) => {
    said = (said + text).slice(0, mostSaid)
  })
  const [code, killedBy] = await ended
  if (code !== 0 || length !== answer.length)
    throw new Error(
      `pages ${verb} ended with ${code ?? killedBy} after ${length} of ${answer.length} bytes: ${said}`,
    )
  return answer
}

const bytesOf = (ranges: readonly PageRange[]): number => ranges.reduce((sum, { length }) => sum + length, 0)

function written(ranges: readonly PageRange[]): Buffer {
  const bytes = Buffer.alloc(ranges.length * rangeBytes)
  for (const [index, { first, second, length }] of ranges.entries()) {
    bytes.writeBigUInt64LE(BigInt(first), index * rangeBytes)
    bytes.writeBigUInt64LE(BigInt(second), index * rangeBytes + 8)
    bytes.writeBigUInt64LE(BigInt(length), index * rangeBytes + 16)
  }
  return bytes
}
