/**
 * Guesses where in the base the content of a file recurs. The guesses decide how small a delta becomes, never its
 * content: a block is left out only after a comparison (of its bytes, or of the files' digests), and the receiver
 * checks the digest of each file.
 */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { isCheckpointError } from '../errors.ts'
import { type Pagemap, type PageRun, parsePagemap } from '../images/pagemap.ts'
import type { GenerationFile } from '../manifest.ts'
import { isSystemError, type Stored } from '../stored.ts'
import { tarMembers } from './tar-members.ts'
import { createWindowReader, type WindowReader } from './window-reader.ts'

/** A part of a file. The parts of a file follow each other without gaps, from its start to its end. */
export interface Part {
  readonly length: number
  /** File of the base (index in its manifest) and the offset where the bytes might be. Absent: nowhere. */
  readonly like?: {
    readonly file: number
    readonly offset: number
    /** The digests are equal: no comparison needed. */
    readonly certain?: true
  }
}

/** Smaller files are sent whole: they are few bytes, and a delta of them would need them unchanged on both nodes. */
export const smallestCompared = 256 * 1024

export const isPages = /(^|\/)pages-[^/]+\.img$/
const isPagemap = /(^|\/)pagemap-[^/]+\.img$/

/** Unit of addresses in page runs, bytes. */
const unit = 4096

export type Plan = ReadonlyMap<string, readonly Part[]>

/** Returns the parts of each file to compare, by path. Reads page maps and archives of both generations. */
export async function planDelta(base: Stored, next: Stored): Promise<Plan> {
  const indexes = new Map(base.manifest.files.map((file, index) => [file.path, index]))
  const contentOf = ({ sha256, size, byPage }: GenerationFile) => `${sha256} ${size} ${byPage === true}`
  const sameContent = new Map(base.manifest.files.map((file, index) => [contentOf(file), index]))
  const twinOf = (file: GenerationFile) => sameContent.get(contentOf(file))
  const wanted = next.manifest.files.filter(
    file => file.size >= smallestCompared && twinOf(file) === undefined,
  )
  const pages = wanted.some(({ path }) => isPages.test(path))
    ? await planPages(base, { dir: next.dir, files: next.manifest.files })
    : new Map<string, readonly Part[]>()
  const plan = new Map<string, readonly Part[]>()
  const readers = { base: createWindowReader(base), next: createWindowReader(next) }
  try {
    for (const [index, file] of next.manifest.files.entries()) {
      if (file.size < smallestCompared) continue
      const twin = twinOf(file)
      const namesake = indexes.get(file.path)
      if (twin !== undefined)
        plan.set(file.path, [{ length: file.size, like: { file: twin, offset: 0, certain: true } }])
      else if (namesake !== undefined && file.path.endsWith('.tar'))
        plan.set(file.path, await sameMembers(readers, index, file.size, namesake, base))
      else plan.set(file.path, pages.get(file.path) ?? sameOffsets(file.size, base, namesake))
    }
  } finally {
    await readers.base.close()
    await readers.next.close()
  }
  return plan
}

function sameOffsets(size: number, base: Stored, index: number | undefined): readonly Part[] {
  const known = index === undefined ? undefined : base.manifest.files[index]
  const parts = createParts()
  const common = Math.min(size, known?.size ?? 0)
  if (index !== undefined) parts.add(common, { file: index, offset: 0 })
  parts.add(size - (index === undefined ? 0 : common))
  return parts.all
}

/** Matches by member: a file that grows in an archive moves all members after it. */
async function sameMembers(
  readers: { readonly base: WindowReader; readonly next: WindowReader },
  index: number,
  size: number,
  namesake: number,
  base: Stored,
): Promise<readonly Part[]> {
  const known = await tarMembers(readers.base, namesake, base.manifest.files[namesake]?.size ?? 0)
  const parts = createParts()
  let end = 0
  for (const [name, { offset, length }] of await tarMembers(readers.next, index, size)) {
    const there = known.get(name)
    const common = Math.min(length, there?.length ?? 0)
    if (there !== undefined) parts.add(common, { file: namesake, offset: there.offset })
    parts.add(length - common)
    end = offset + length
  }
  parts.add(size - end)
  return parts.all
}

/** Merges parts that are adjacent in both files. */
function createParts() {
  const all: { length: number; like?: NonNullable<Part['like']> }[] = []
  return {
    all: all as readonly Part[],
    add(length: number, like?: NonNullable<Part['like']>) {
      const last = all.at(-1)
      if (length === 0) return
      if (last === undefined || !continues(last, like))
        all.push(like === undefined ? { length } : { length, like })
      else last.length += length
    },
  }
}

function continues(last: Part, like: Part['like']): boolean {
  if (last.like === undefined || like === undefined) return last.like === like
  return last.like.file === like.file && last.like.offset + last.length === like.offset
}

/**
 * Returns the parts of each pages image. It finds the same addresses of the same task in the base: pages that appear or vanish
 * shift all pages after them.
 */
export async function planPages(base: Stored, next: Listed): Promise<Plan> {
  const past: Listed = { dir: base.dir, files: base.manifest.files }
  const indexes = new Map(past.files.map((file, index) => [file.path, index]))
  const parts = new Map<string, readonly Part[]>()
  for (const { path } of next.files) {
    if (!isPagemap.test(path)) continue
    const map = await loadPagemap(next, path)
    const baseMap = indexes.has(path) ? await loadPagemap(past, path) : undefined
    if (map === undefined || baseMap === undefined) continue
    const file = indexes.get(baseMap.pages)
    if (file !== undefined && map.unitsPerPage === baseMap.unitsPerPage)
      parts.set(map.pages, await matchRuns(map.runs, baseMap.runs, map.unitsPerPage, file))
  }
  return parts
}

/** A directory with its files. */
interface Listed {
  readonly dir: string
  readonly files: readonly Pick<GenerationFile, 'path' | 'size'>[]
}

interface LoadedPagemap {
  /** Path of the pages image. */
  readonly pages: string
  readonly runs: readonly PageRun[]
  readonly unitsPerPage: number
}

/** Returns undefined for a page map that cannot be used. Its pages are then compared with those at the same offsets. */
async function loadPagemap({ dir, files }: Listed, path: string): Promise<LoadedPagemap | undefined> {
  let map: Pagemap
  try {
    map = await parsePagemap(path, await readFile(join(dir, path)))
  } catch (error) {
    if (isCheckpointError(error, 'BadImage') || isSystemError(error, 'ENOENT')) return undefined
    throw error
  }
  const pages = `${path.slice(0, path.lastIndexOf('/') + 1)}pages-${map.pagesId}.img`
  const size = files.find(file => file.path === pages)?.size ?? 0
  const count = map.runs.reduce((sum, run) => sum + run.pages, 0)
  const unitsPerPage = size / count / unit
  // If the file does not hold exactly these pages, its layout is unknown here.
  return Number.isInteger(unitsPerPage) && unitsPerPage > 0
    ? { pages, runs: map.runs, unitsPerPage }
    : undefined
}

interface Placed {
  readonly start: number
  readonly end: number
  /** Offset in its pages image, units of 4 KiB. */
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

/** Runs matched before the event loop gets a turn. */
const batch = 8192

async function matchRuns(
  runs: readonly PageRun[],
  baseRuns: readonly PageRun[],
  unitsPerPage: number,
  file: number,
): Promise<readonly Part[]> {
  const known = place(baseRuns, unitsPerPage).sort((a, b) => a.start - b.start)
  const parts = createParts()
  const push = (units: number, there?: number) =>
    parts.add(units * unit, there === undefined ? undefined : { file, offset: there * unit })
  for (const [count, { start, end }] of place(runs, unitsPerPage).entries()) {
    if (count % batch === 0) await setImmediate()
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
  return parts.all
}

/** Index of the first run that ends after an address. Runs must be sorted. */
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
