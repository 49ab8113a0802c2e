/** Position of a task's memory in its pages image. */
import { CheckpointError } from '../errors.ts'
import { decodeEntry, eachEntry, forEachEntry } from './image-file.ts'
import { has } from './message.ts'
import { pagemapEntry, pagemapHead } from './messages.ts'

/** A run of pages that are adjacent both in the address space and in the pages image. */
export interface PageRun {
  /** Address of the first page in units of 4 KiB, whatever the page size, so that a JavaScript number can hold it. */
  readonly address: number
  readonly pages: number
}

export interface Pagemap {
  /** The pages are in `pages-<pagesId>.img`. */
  readonly pagesId: number
  /** In the order of their pages in that file. Runs without pages in that file are left out. */
  readonly runs: readonly PageRun[]
}

/** More than any machine has, and small enough that sums with it stay exact. */
const mostPages = 2 ** 40

/** Flags of an entry. */
const inParent = 1
const present = 4

/** @throws CheckpointError BadImage */
export async function parsePagemap(name: string, bytes: Buffer): Promise<Pagemap> {
  const entries = eachEntry('pagemap', name, bytes)
  const head = entries.next().value
  if (head === undefined) throw new CheckpointError('BadImage', `${name} has no entry`)
  const { pagesId } = decodeEntry(name, pagemapHead, head)
  const runs: PageRun[] = []
  await forEachEntry(entries, entry => {
    const run = pageRun(name, entry)
    if (run !== undefined) runs.push(run)
  })
  return { pagesId, runs }
}

function pageRun(name: string, bytes: Buffer): PageRun | undefined {
  const entry = decodeEntry(name, pagemapEntry, bytes)
  const elsewhere = has(pagemapEntry, entry, 'flags')
    ? (entry.flags & inParent) !== 0 || (entry.flags & present) === 0
    : entry.inParent
  // The older field has 32 bits. CRIU sets both for small runs.
  const pages = has(pagemapEntry, entry, 'nrPages') ? Number(entry.nrPages) : entry.compatNrPages
  if ((entry.vaddr & 0xfffn) !== 0n || entry.vaddr >> 56n !== 0n || pages > mostPages)
    throw new CheckpointError('BadImage', `${name} has pages at an impossible address`)
  return elsewhere || pages === 0 ? undefined : { address: Number(entry.vaddr >> 12n), pages }
}
