/**
 * Completes an incremental dump: CRIU has saved only the pages that were written since the dump before. Nothing else
 * need know of increments, because the result has the same files as a full dump.
 */
import { readdir, readFile, rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { createTurns } from '../delta/turns.ts'
import { CheckpointError } from '../errors.ts'
import type { CopyPages } from '../page-program.ts'
import { readImage } from './image-file.ts'
import { stackEntry } from './messages.ts'
import { createPageWriter, gone, openPages, type Pages, page, pagesName } from './page-files.ts'
import { type PageEntry, pagemapOf, parsePageEntries } from './pagemap.ts'

/** A page that was saved although it was not written, as the audit draws them. */
export interface AuditedPage {
  /** Pid in the names of the images. */
  readonly pid: number
  /** In units of 4 KiB. */
  readonly address: number
}

export interface Completed {
  /** Pages that were written since the dump before, audited ones included. */
  readonly written: number
  /** Pages whose content comes from the dump before. */
  readonly unchanged: number
  /** Audited pages that differ from the dump before: it was wrong to call them unchanged. */
  readonly wrong: number
  /** The digests of the pages of files, by the names of these; only of files whose digests are known without reading them. */
  readonly digests: ReadonlyMap<string, Buffer>
}

/** The dump before, and knowledge of it. Files go by their names. */
export interface Before {
  /** Directory with the page maps and pages of a complete dump. */
  readonly directory: string
  /** Returns the digests of the pages of a file; undefined: they are not known. */
  digestsOf(pages: string): Buffer | undefined
  /**
   * Moves the file of an earlier dump, which is no longer needed, to a place where it may be written over.
   * @returns the digests of its pages; undefined: there is none.
   */
  takeSpare(pages: string, to: string): Promise<Buffer | undefined>
  readonly copyPages?: CopyPages | undefined
}

/** @throws CheckpointError BadImage when the dump before lacks a page; the signal's reason. */
export async function completeIncrement(
  images: string,
  before: Before,
  audited: readonly AuditedPage[],
  signal: AbortSignal,
): Promise<Completed> {
  const sum = { written: 0, unchanged: 0, wrong: 0, digests: new Map<string, Buffer>() }
  const names = (await readdir(images)).filter(name => /^pagemap-.*\.img$/.test(name))
  const stacks = await stackPages(images)
  for (const name of names) {
    const { pagesId, entries } = await parsePageEntries(name, await readFile(join(images, name)))
    if (entries.every(({ isHere }) => isHere)) {
      sum.written += pagesIn(entries)
      continue
    }
    const pid = Number(/^pagemap-(\d+)\.img$/.exec(name)?.[1])
    const own = audited.flatMap(it => (it.pid === pid ? [it.address] : [])).sort((a, b) => a - b)
    const result = await completeOne({ images, before, name, pagesId, entries, own, stacks, signal })
    sum.written += result.written
    sum.unchanged += result.unchanged
    sum.wrong += result.wrong
    if (result.digests !== undefined) sum.digests.set(pagesName(pagesId), result.digests)
  }
  return sum
}

const pagesIn = (entries: readonly PageEntry[]) => entries.reduce((sum, { pages }) => sum + pages, 0)

interface Task {
  readonly images: string
  readonly before: Before
  readonly name: string
  readonly pagesId: number
  readonly entries: readonly PageEntry[]
  /** Addresses of its audited pages, sorted. */
  readonly own: readonly number[]
  /** Addresses of the pages of stack pointers, sorted. */
  readonly stacks: readonly number[]
  readonly signal: AbortSignal
}

interface CompletedOne extends Omit<Completed, 'digests'> {
  readonly digests: Buffer | undefined
}

async function completeOne(task: Task): Promise<CompletedOne> {
  const { images, before, name, pagesId, entries, own, stacks, signal } = task
  const old = await parsePageEntries(name, await readFile(join(before.directory, name)).catch(gone))
  await using present = await openPages(images, pagesId)
  await using past = await openPages(before.directory, old.pagesId)
  const known = before.digestsOf(pagesName(old.pagesId))
  const path = join(images, pagesName(pagesId))
  const result = { written: 0, unchanged: 0, wrong: 0 }
  let digests: Buffer | undefined
  {
    await using out = await createPageWriter(`${path}.whole`, {
      ...{ size: pagesIn(entries) * page, digest: known === undefined ? 'None' : 'OfPages' },
      spare: known && (await before.takeSpare(pagesName(pagesId), `${path}.whole`)),
      ...{ copyPages: before.copyPages, signal },
    })
    const whole: PageEntry[] = []
    const find = createFinder(name, old.entries)
    let offset = 0
    for (const entry of entries) {
      signal.throwIfAborted()
      if (entry.isHere) {
        await out.copy(present, offset, entry.pages)
        offset += entry.pages
        result.written += entry.pages
        push(whole, entry)
        continue
      }
      for (const { at, pages, address, isLazy } of find(entry)) {
        await out.copy(past, at, pages, known)
        result.unchanged += pages
        for (const part of aroundStacks({ address, pages, isLazy, isHere: true }, stacks)) push(whole, part)
      }
    }
    result.wrong = await countWrong({ name, own, entries, old: old.entries, present, past })
    digests = await out.finish()
    await writeFile(join(images, `${name}.whole`), pagemapOf(pagesId, whole), { mode: 0o600 })
  }
  await rename(`${path}.whole`, path)
  await rename(join(images, `${name}.whole`), join(images, name))
  return { ...result, digests }
}

/** Joins adjacent entries of one kind. */
function push(entries: PageEntry[], next: PageEntry): void {
  const last = entries.at(-1)
  if (last !== undefined && last.address + last.pages === next.address && last.isLazy === next.isLazy)
    entries[entries.length - 1] = { ...last, pages: last.pages + next.pages }
  else entries.push({ ...next, isHere: true })
}

/** CRIU restores the page at a thread's stack pointer before the thread runs, whatever else may arrive later. */
function* aroundStacks(entry: PageEntry, stacks: readonly number[]): Generator<PageEntry> {
  const { address, pages } = entry
  const end = address + pages
  let at = address
  for (let index = entry.isLazy ? firstFrom(stacks, address) : stacks.length; ; index += 1) {
    const stack = stacks[index]
    if (stack === undefined || stack >= end) break
    if (stack > at) yield { ...entry, address: at, pages: stack - at }
    yield { ...entry, address: stack, pages: 1, isLazy: false }
    at = stack + 1
  }
  if (at < end) yield { ...entry, address: at, pages: end - at }
}

/** Index of the first number that is not below. */
function firstFrom(sorted: readonly number[], least: number): number {
  let [from, to] = [0, sorted.length]
  while (from < to) {
    const middle = (from + to) >> 1
    if ((sorted[middle] ?? 0) < least) from = middle + 1
    else to = middle
  }
  return from
}

/** The pages of all threads' stack pointers, sorted. Threads of other processes only cost a lazy page each. */
async function stackPages(images: string): Promise<readonly number[]> {
  const found = new Set<number>()
  for (const name of (await readdir(images)).filter(it => /^core-\d+\.img$/.test(it)))
    for (const { threadInfo } of await readImage(images, name, 'core', stackEntry))
      if (threadInfo?.gpregs !== undefined) found.add(Number(threadInfo.gpregs.sp >> 12n))
  return [...found].sort((a, b) => a - b)
}

/** Where a run of pages is in a file: `at` is the number of pages before it. */
interface Place extends Omit<PageEntry, 'isHere'> {
  readonly at: number
}

/**
 * Returns a function that finds pages of a complete dump. Ask it in the order of addresses.
 * @throws CheckpointError BadImage when the dump lacks a page.
 */
function createFinder(name: string, entries: readonly PageEntry[]) {
  let index = 0
  let before = 0
  return (wanted: PageEntry): Place[] => {
    const places: Place[] = []
    const end = wanted.address + wanted.pages
    for (let address = wanted.address; address < end; ) {
      let entry = entries[index]
      for (; entry !== undefined && entry.address + entry.pages <= address; entry = entries[index]) {
        before += entry.isHere ? entry.pages : 0
        index += 1
      }
      if (entry === undefined || entry.address > address || !entry.isHere)
        throw new CheckpointError(
          'BadImage',
          `${name}: the dump before lacks a page that was not written since`,
        )
      const pages = Math.min(end, entry.address + entry.pages) - address
      places.push({ at: before + address - entry.address, pages, address, isLazy: entry.isLazy })
      address += pages
    }
    return places
  }
}

interface Audit {
  readonly name: string
  readonly own: readonly number[]
  readonly entries: readonly PageEntry[]
  readonly old: readonly PageEntry[]
  readonly present: Pages
  readonly past: Pages
}

/**
 * Compares audited pages. CRIU may ask for a page twice, and go by the second answer: the page need not be in this dump.
 */
async function countWrong({ name, own, entries, old, present, past }: Audit): Promise<number> {
  const [findNow, findThen] = [createFinder(name, onlyHere(entries)), createFinder(name, old)]
  const turn = createTurns(setImmediate)
  let wrong = 0
  for (const address of own) {
    const wanted = { address, pages: 1, isHere: true, isLazy: false }
    const now = placeOf(findNow, wanted)
    if (now === undefined) continue
    const then = placeOf(findThen, wanted)
    await turn(page)
    if (then === undefined || !present.page(now).equals(past.page(then))) wrong += 1
  }
  return wrong
}

const onlyHere = (entries: readonly PageEntry[]) => entries.filter(({ isHere }) => isHere)

function placeOf(find: ReturnType<typeof createFinder>, wanted: PageEntry): number | undefined {
  try {
    return find(wanted)[0]?.at
  } catch {
    return undefined
  }
}
