/**
 * Checks that the address spaces in CRIU's images are possible ones. CRIU's restorer trusts the images: it finds a
 * place for itself among the areas and moves them over one another, before a task has only its own rights. Images come
 * from other nodes, so this refuses address spaces that no kernel could have reported.
 */
import { readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { CheckpointError } from '../errors.ts'
import { readImageBytes, readSingle } from './image-file.ts'
import type { ValueOf } from './message.ts'
import { mmEntry } from './messages.ts'
import { type PageRun, parsePagemap } from './pagemap.ts'
import { tasksOf } from './tasks.ts'

const page = 4096n
/** End of user space with five-level page tables. Above it is only one page, which old programs call. */
const endOfUserSpace = 1n << 56n
const vsyscall = 0xffffffffff600000n
/** The kernel's own limit is a sixteenth of it unless an administrator has raised it. */
const mostAreas = 1 << 20
/** Words of the auxiliary vector. No kernel has ever used half of them. */
const mostAuxiliary = 128

interface Span {
  readonly start: bigint
  readonly end: bigint
}

/**
 * @param pageBytes page size of this machine.
 * @throws CheckpointError BadImage
 */
export async function assertAddressSpaces(dir: string, pageBytes: number): Promise<void> {
  const names = new Set(await readdir(dir))
  const needed = new Map<string, bigint>()
  const count = (pages: string, runs: readonly PageRun[]) => {
    const bytes = runs.reduce((sum, run) => sum + BigInt(run.pages) * BigInt(pageBytes), 0n)
    needed.set(pages, (needed.get(pages) ?? 0n) + bytes)
  }
  for (const { pid } of await tasksOf(dir)) {
    // A task that had ended before the dump has no memory.
    if (!names.has(`mm-${pid}.img`)) continue
    const areas = areasOf(`mm-${pid}.img`, await readSingle(dir, `mm-${pid}.img`, 'mm', mmEntry))
    const name = `pagemap-${pid}.img`
    if (!names.has(name)) continue
    const { pagesId, runs } = await parsePagemap(name, await readImageBytes(dir, name))
    assertWithin(name, runs, areas, pageBytes)
    count(`pages-${pagesId}.img`, runs)
  }
  for (const name of names) {
    if (!/^pagemap-shmem-\d+\.img$/.test(name)) continue
    const { pagesId, runs } = await parsePagemap(name, await readImageBytes(dir, name))
    assertWithin(name, runs, [{ start: 0n, end: endOfUserSpace }], pageBytes)
    count(`pages-${pagesId}.img`, runs)
  }
  for (const [name, bytes] of needed) {
    const size = names.has(name) ? BigInt((await stat(join(dir, name))).size) : 0n
    if (bytes > size) throw new CheckpointError('BadImage', `${name} lacks pages that the page maps name`)
  }
}

/** Returns the areas sorted, without overlaps, and with adjacent ones merged. */
function areasOf(name: string, { vmas, mmSavedAuxv }: ValueOf<typeof mmEntry>): Span[] {
  const bad = (what: string): never => {
    throw new CheckpointError('BadImage', `${name} has ${what}`)
  }
  if (vmas.length > mostAreas) bad(`${vmas.length} areas`)
  if (mmSavedAuxv.length > mostAuxiliary) bad(`an auxiliary vector of ${mmSavedAuxv.length} words`)
  const areas: Span[] = []
  let last = 0n
  for (const { start, end, pgoff } of vmas) {
    if (start % page !== 0n || end % page !== 0n || pgoff % page !== 0n)
      bad('an area that is not aligned to pages')
    if (end <= start) bad('an area that ends before it begins')
    if (end > endOfUserSpace && start !== vsyscall) bad('an area beyond user space')
    if (start < last) bad('overlapping or unsorted areas')
    const before = areas.at(-1)
    if (before?.end === start) areas[areas.length - 1] = { start: before.start, end }
    else areas.push({ start, end })
    last = end
  }
  return areas
}

/** Both lists are sorted, so one pass over each is enough. */
function assertWithin(
  name: string,
  runs: readonly PageRun[],
  areas: readonly Span[],
  pageBytes: number,
): void {
  const unit = BigInt(pageBytes) / page
  let at = 0
  let last = 0n
  for (const run of runs) {
    const start = BigInt(run.address) * page
    const end = start + BigInt(run.pages) * unit * page
    if (start < last) throw new CheckpointError('BadImage', `${name} has overlapping or unsorted pages`)
    for (let area = areas[at]; area !== undefined && area.end <= start; area = areas[at]) at += 1
    const area = areas[at]
    if (area === undefined || start < area.start || end > area.end)
      throw new CheckpointError('BadImage', `${name} has pages outside of all areas`)
    last = end
  }
}
