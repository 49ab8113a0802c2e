/** Incremental dumps: CRIU saves the pages that were written since the previous dump, and the agent adds the others. */
import { link, mkdir, open, readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { AgentError, isAgentError } from '../../api/agent-errors.ts'
import { openSpare } from '../../checkpoint/delta/patch.ts'
import { readSingle } from '../../checkpoint/images/image-file.ts'
import { type AuditedPage, completeIncrement } from '../../checkpoint/images/increment.ts'
import { mmEntry } from '../../checkpoint/images/messages.ts'
import { digestsOfPath, readPageDigests } from '../../checkpoint/page-digests.ts'
import { isGone, unlessGone } from '../container/process.ts'
import { dumpBefore, imagesOf, type PageRecord } from './criu.ts'
import type { DriverDependencies } from './dependencies.ts'
import type { DumpOptions, DumpResult, LocatedPod } from './memory-driver.ts'
import type { TrackedDump } from './tracking.ts'

/** Runs a dump with the node's record of written pages, and tells the record how the dump ended. */
export async function tracking(
  deps: Pick<DriverDependencies, 'tracking'>,
  located: LocatedPod,
  directory: string,
  { base, isRecordRequested, signal }: DumpOptions,
  dump: (tracked: TrackedDump | undefined) => Promise<DumpResult>,
): Promise<DumpResult> {
  const tracked = await deps.tracking?.begin(located, base, signal, isRecordRequested)
  if (tracked === undefined) return dump(undefined)
  const { uid } = located.pod
  try {
    const result = await dump(tracked)
    const images = located.containers.map(container => join(directory, imagesOf(container)))
    deps.tracking?.done(uid, result.takenAt, await whyNotSince(images))
    return result
  } catch (error) {
    deps.tracking?.failed(uid, isAgentError(error, 'RecordWrong') ? error.detail : undefined)
    throw error
  }
}

/**
 * Why the kernel may miss writes from this dump on; undefined: it does not. The kernel itself writes to memory for
 * asynchronous input, past the page tables. CRIU cannot save a process with anything else that does so (io_uring, RDMA,
 * VFIO, another userfaultfd).
 */
async function whyNotSince(directories: readonly string[]): Promise<string | undefined> {
  for (const images of directories)
    for (const name of (await readdir(images)).filter(it => /^mm-\d+\.img$/.test(it))) {
      const { aios } = await readSingle(images, name, 'mm', mmEntry)
      if (aios.length > 0) return 'asynchronous input and output'
    }
  return undefined
}

/**
 * Links the memory of the dump before to where CRIU looks for it: the generation may be removed while this dump runs.
 * CRIU only tests whether the pages are there.
 * @returns false if the generation has been removed meanwhile.
 */
export async function linkBefore(images: string, work: string): Promise<boolean> {
  const to = join(work, dumpBefore)
  await mkdir(to, { mode: 0o700 })
  try {
    for (const name of await readdir(images))
      if (/^(inventory|pagemap-.*|pages-\d+)\.img$/.test(name)) await link(join(images, name), join(to, name))
    return true
  } catch (error) {
    if (isGone(error)) return false
    throw error
  }
}

interface Saved {
  readonly container: { readonly name: string }
  readonly images: string
  readonly work: string
  readonly record: PageRecord
}

/** The dump before, of which unchanged pages are taken, and one that may be written over. */
interface Earlier {
  readonly base: DumpOptions['base']
  readonly takeSpare: DumpOptions['takeSpare']
  readonly copyPages: DriverDependencies['copyPages']
}

/**
 * Adds the unchanged pages to the images of all containers.
 * @returns the digests of the pages of files, by the path in the generation, where they are known without reading the file.
 * @throws AgentError RecordWrong
 */
export async function completeAll(
  targets: readonly Saved[],
  { base, takeSpare = () => undefined, copyPages }: Earlier,
  signal: AbortSignal,
): Promise<ReadonlyMap<string, Buffer>> {
  const all = new Map<string, Buffer>()
  const increments = targets.filter(({ record }) => record === 'Since')
  if (increments.length === 0) return all
  const known = base && (await readPageDigests(base))
  const spare = known?.size ? await openSpare({ takeSpare }) : undefined
  for (const { container, images, work } of increments) {
    // CRIU's link to the dump before.
    await rm(join(images, 'parent'), { force: true })
    const audited = await readAudited(join(work, 'audited'))
    const pathOf = (pages: string) => `${imagesOf(container)}/${pages}`
    const before = {
      directory: join(work, dumpBefore),
      digestsOf: (pages: string) => known && base && digestsOfPath(known, base.manifest, pathOf(pages)),
      takeSpare: async (pages: string, to: string) => spare?.take({ path: pathOf(pages), byPage: true }, to),
      copyPages,
    }
    const { wrong, digests } = await completeIncrement(images, before, audited, signal)
    if (wrong > 0)
      throw new AgentError(
        'RecordWrong',
        `container ${container.name}: ${wrong} of ${audited.length} audited pages`,
      )
    for (const [pages, ofPages] of digests) all.set(pathOf(pages), ofPages)
  }
  return all
}

const recordBytes = 16

/** Reads the list of native/criu-shim/track.c; none if nothing was unchanged. */
async function readAudited(path: string): Promise<AuditedPage[]> {
  const file = await unlessGone(open(path, 'r'))
  if (file === undefined) return []
  try {
    const bytes = await file.readFile()
    const pages: AuditedPage[] = []
    for (let at = 0; at + recordBytes <= bytes.length; at += recordBytes)
      pages.push({
        pid: Number(bytes.readBigUInt64LE(at)),
        address: Number(bytes.readBigUInt64LE(at + 8) >> 12n),
      })
    return pages
  } finally {
    await file.close()
  }
}
