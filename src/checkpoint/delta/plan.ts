/**
 * Where in the base the content of a file may be found again. These are guesses that decide how small a delta becomes,
 * never what it says: a block is left out only after it was compared, and the receiver checks the digest of the whole.
 */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { isCheckpointError } from '../errors.ts'
import { type Pagemap, type PageRun, parsePagemap } from '../images/pagemap.ts'
import type { GenerationFile } from '../manifest.ts'
import { isSystemError, type Stored } from '../stored.ts'

/** A part of a file; parts follow each other without gaps, from its start to its end. */
export interface Part {
  readonly length: number
  /** File of the base (index in its manifest) and where its bytes might be. Absent: nowhere. */
  readonly like?: {
    readonly file: number
    readonly offset: number
    /** The digests say so: not to be compared. */
    readonly certain?: true
  }
}

/** Smaller files are sent as they are: they are few bytes, and comparing them would need them unchanged on both sides. */
export const smallestCompared = 256 * 1024

/** The unit of addresses in page runs. */
const unit = 4096

export type Plan = (file: GenerationFile) => readonly Part[]

/** Looks through the page maps of both generations once. */
export async function planDelta(base: Stored, next: Stored): Promise<Plan> {
  const indexes = new Map(base.manifest.files.map((file, index) => [file.path, index]))
  const sameContent = new Map(base.manifest.files.map((file, index) => [file.sha256, index]))
  const pages = await pageParts(base, next, indexes)
  return file => {
    if (file.size < smallestCompared) return [{ length: file.size }]
    const twin = sameContent.get(file.sha256)
    if (twin !== undefined && base.manifest.files[twin]?.size === file.size)
      return [{ length: file.size, like: { file: twin, offset: 0, certain: true } }]
    return pages.get(file.path) ?? sameOffsets(file, base, indexes.get(file.path))
  }
}

function sameOffsets({ size }: GenerationFile, base: Stored, index: number | undefined): readonly Part[] {
  const known = index === undefined ? undefined : base.manifest.files[index]
  if (index === undefined || known === undefined) return [{ length: size }]
  const common = Math.min(size, known.size)
  const rest = size - common
  return [{ length: common, like: { file: index, offset: 0 } }, ...(rest > 0 ? [{ length: rest }] : [])]
}

/**
 * For every pages image the places of the same addresses of the same task in the base: pages that appear or vanish
 * shift all that come after them.
 */
async function pageParts(
  base: Stored,
  next: Stored,
  indexes: ReadonlyMap<string, number>,
): Promise<Map<string, readonly Part[]>> {
  const parts = new Map<string, readonly Part[]>()
  for (const { path } of next.manifest.files) {
    if (!/(^|\/)pagemap-[^/]+\.img$/.test(path)) continue
    const map = await loadPagemap(next, path)
    const baseMap = indexes.has(path) ? await loadPagemap(base, path) : undefined
    if (map === undefined || baseMap === undefined) continue
    const file = indexes.get(baseMap.pages)
    if (file !== undefined && map.unitsPerPage === baseMap.unitsPerPage)
      parts.set(map.pages, matchRuns(map.runs, baseMap.runs, map.unitsPerPage, file))
  }
  return parts
}

interface LoadedPagemap {
  /** Path of the pages image. */
  readonly pages: string
  readonly runs: readonly PageRun[]
  readonly unitsPerPage: number
}

/** Undefined when it is not understood: then its pages are compared with those at the same offsets. */
async function loadPagemap({ dir, manifest }: Stored, path: string): Promise<LoadedPagemap | undefined> {
  let map: Pagemap
  try {
    map = await parsePagemap(path, await readFile(join(dir, path)))
  } catch (error) {
    if (isCheckpointError(error, 'BadImage') || isSystemError(error, 'ENOENT')) return undefined
    throw error
  }
  const pages = `${path.slice(0, path.lastIndexOf('/') + 1)}pages-${map.pagesId}.img`
  const size = manifest.files.find(file => file.path === pages)?.size ?? 0
  const count = map.runs.reduce((sum, run) => sum + run.pages, 0)
  const unitsPerPage = size / count / unit
  // A file that does not hold exactly these pages is laid out in a way that is not known here.
  return Number.isInteger(unitsPerPage) && unitsPerPage > 0
    ? { pages, runs: map.runs, unitsPerPage }
    : undefined
}

interface Placed {
  readonly start: number
  readonly end: number
  /** In its pages image, units. */
  readonly offset: number
}

function place(runs: readonly PageRun[], unitsPerPage: number): Placed[] {
  let offset = 0
  return runs.map(({ address, pages }) => {
    const length = pages * unitsPerPage
    const placed = { start: address, end: address + length, offset }
    offset += length
    return placed
  })
}

function matchRuns(
  runs: readonly PageRun[],
  baseRuns: readonly PageRun[],
  unitsPerPage: number,
  file: number,
): readonly Part[] {
  const known = place(baseRuns, unitsPerPage).sort((a, b) => a.start - b.start)
  const parts: Part[] = []
  const push = (units: number, like?: number) => {
    if (units > 0)
      parts.push({
        length: units * unit,
        ...(like === undefined ? {} : { like: { file, offset: like * unit } }),
      })
  }
  for (const { start, end } of place(runs, unitsPerPage)) {
    let at = start
    for (let index = firstEndingAfter(known, start); at < end; index += 1) {
      const there = known[index]
      if (there === undefined || there.start >= end) break
      const from = Math.max(at, there.start)
      const to = Math.min(end, there.end)
      if (to <= from) continue
      push(from - at)
      push(to - from, there.offset + from - there.start)
      at = to
    }
    push(end - at)
  }
  return parts
}

/** Index of the first run that ends after an address; runs are sorted. */
function firstEndingAfter(runs: readonly Placed[], address: number): number {
  let low = 0
  let high = runs.length
  while (low < high) {
    const middle = (low + high) >>> 1
    const run = runs[middle]
    if (run !== undefined && run.end <= address) low = middle + 1
    else high = middle
  }
  return low
}
