/** Position of a task's memory in its pages image. */
import { CheckpointError } from '../errors.ts'
import { decodeEntry, eachEntry, forEachEntry, joinEntries } from './image-file.ts'
import { encode, has, make } from './message.ts'
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
const lazy = 2
const present = 4

/** A run of adjacent pages in one entry. */
export interface PageEntry extends PageRun {
  /** The pages are in this dump's file; otherwise the process has them, and the dump before has their content. */
  readonly isHere: boolean
  /** They may arrive after the process has been restored. */
  readonly isLazy: boolean
}

/** @throws CheckpointError BadImage */
export async function parsePagemap(name: string, bytes: Buffer): Promise<Pagemap> {
  const { pagesId, entries } = await parsePageEntries(name, bytes)
  return {
    pagesId,
    runs: entries.flatMap(({ isHere, address, pages }) => (isHere ? [{ address, pages }] : [])),
  }
}

/** The same with the pages that only the dump before has. @throws CheckpointError BadImage */
export async function parsePageEntries(
  name: string,
  bytes: Buffer,
): Promise<{ readonly pagesId: number; readonly entries: readonly PageEntry[] }> {
  const encoded = eachEntry('pagemap', name, bytes)
  const head = encoded.next().value
  if (head === undefined) throw new CheckpointError('BadImage', `${name} has no entry`)
  const { pagesId } = decodeEntry(name, pagemapHead, head)
  const entries: PageEntry[] = []
  await forEachEntry(encoded, entry => {
    const run = pageEntry(name, entry)
    if (run !== undefined) entries.push(run)
  })
  return { pagesId, entries }
}

function pageEntry(name: string, bytes: Buffer): PageEntry | undefined {
  const entry = decodeEntry(name, pagemapEntry, bytes)
  const flags = has(pagemapEntry, entry, 'flags') ? entry.flags : entry.inParent ? inParent : present
  // The older field has 32 bits. CRIU sets both for small runs.
  const pages = has(pagemapEntry, entry, 'nrPages') ? Number(entry.nrPages) : entry.compatNrPages
  if ((entry.vaddr & 0xfffn) !== 0n || entry.vaddr >> 56n !== 0n || pages > mostPages)
    throw new CheckpointError('BadImage', `${name} has pages at an impossible address`)
  const isHere = (flags & inParent) === 0 && (flags & present) !== 0
  if (pages === 0 || !(isHere || (flags & inParent) !== 0)) return undefined
  return { address: Number(entry.vaddr >> 12n), pages, isHere, isLazy: (flags & lazy) !== 0 }
}

/** The image of these entries, all of whose pages are in `pages-<pagesId>.img`. */
export function pagemapOf(pagesId: number, entries: readonly Omit<PageEntry, 'isHere'>[]): Buffer {
  const encoded = entries.map(({ address, pages, isLazy }) =>
    encode(
      pagemapEntry,
      make(pagemapEntry, {
        vaddr: BigInt(address) << 12n,
        compatNrPages: 0,
        flags: present | (isLazy ? lazy : 0),
        nrPages: BigInt(pages),
      }),
    ),
  )
  return joinEntries('pagemap', [encode(pagemapHead, make(pagemapHead, { pagesId })), ...encoded])
}
