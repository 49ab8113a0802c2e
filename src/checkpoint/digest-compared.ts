/** Digests a file of pages of which another program has told which ones are as in the generation before. */
import type { FileHandle } from 'node:fs/promises'
import { setImmediate } from 'node:timers/promises'
import type { Part } from './delta/plan.ts'
import { createTurns } from './delta/turns.ts'
import { chunkBytes } from './files.ts'
import { digestsAt, type PageDigester, type PageDigests } from './page-digests.ts'
import { mostRanges, type PageRange } from './page-program.ts'
import { pageBytes } from './stored.ts'

/** Fewer pages are hashed: a separate read of the next changed page costs more. */
const leastSame = 16

/** Most pages of a run: the digests of more would be hashed in one piece. */
const pagesAtOnce = 32_768

interface Ranged {
  /** File of the generation before, as an index of its manifest. */
  readonly file: number
  /** Digests of its pages. */
  readonly known: Buffer
  readonly ranges: readonly PageRange[]
}

/**
 * Returns the parts whose pages could be those of one file of the generation before, by their offsets here and there; undefined: there
 * are none, or too many.
 */
export function rangesOf(parts: readonly Part[], digests: PageDigests): Ranged | undefined {
  const ranges: PageRange[] = []
  let found: Pick<Ranged, 'file' | 'known'> | undefined
  let at = 0
  for (const { length, like } of parts) {
    const isWhole = [at, length, like?.offset ?? 0].every(bytes => bytes % pageBytes === 0)
    const known = like && digests.get(like.file)
    if (isWhole && like !== undefined && known !== undefined && (found?.file ?? like.file) === like.file) {
      found = { file: like.file, known }
      if (ranges.push({ first: at, second: like.offset, length }) > mostRanges) return undefined
    }
    at += length
  }
  return found && { ...found, ranges }
}

/**
 * @param same a byte for each page of the ranges: 1, it is as before.
 * @returns the number of bytes.
 */
export async function digestCompared(
  file: FileHandle,
  { known, ranges }: Pick<Ranged, 'known' | 'ranges'>,
  same: Buffer,
  digester: PageDigester,
  signal: AbortSignal | undefined,
): Promise<number> {
  const buffer = Buffer.allocUnsafe(chunkBytes)
  let size = 0
  /** Reads up to this offset, or to the end of the file. */
  const readTo = async (end: number) => {
    while (size < end) {
      signal?.throwIfAborted()
      const { bytesRead } = await file.read(buffer, 0, Math.min(buffer.length, end - size), size)
      if (bytesRead === 0) return
      digester.update(buffer.subarray(0, bytesRead))
      size += bytesRead
    }
  }
  const turn = createTurns(setImmediate)
  let index = 0
  for (const { first, second, length } of ranges) {
    const pages = same.subarray(index, index + length / pageBytes)
    index += pages.length
    await readTo(first)
    for (const { from, to, isSame } of runsOf(pages)) {
      signal?.throwIfAborted()
      const bytes = (to - from) * pageBytes
      if (!isSame) await readTo(first + to * pageBytes)
      else {
        digester.addKnown(digestsAt(known, second + from * pageBytes, bytes))
        size += bytes
      }
      await turn(bytes)
    }
  }
  await readTo(Number.POSITIVE_INFINITY)
  return size
}

interface Run {
  readonly from: number
  readonly to: number
  readonly isSame: boolean
}

/**
 * Returns runs of pages that are the same, and what lies between them. A few pages that are the same count as changed, if others before
 * them have changed.
 */
export function* runsOf(same: Buffer): Generator<Run> {
  /** Where the pages begin that were not returned yet: they have changed. */
  let from = 0
  for (let at = 0; at < same.length; ) {
    const changed = same.indexOf(0, at)
    const end = changed < 0 ? same.length : changed
    if (end - at >= leastSame || (at === from && end > at)) {
      if (at > from) yield { from, to: at, isSame: false }
      for (from = at; from < end; from += Math.min(pagesAtOnce, end - from))
        yield { from, to: Math.min(from + pagesAtOnce, end), isSame: true }
    }
    const next = same.indexOf(1, end)
    at = next < 0 ? same.length : next
  }
  if (same.length > from) yield { from, to: same.length, isSame: false }
}
