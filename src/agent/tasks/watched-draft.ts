/**
 * Watches the size of a draft while a dump writes it. Nothing tells in advance how large a tenant's dump gets: its
 * processes allocate memory, and its volumes fill, until they are stopped. A limit of a file does not bound the draft,
 * for there may be any number of files. Bytes beyond the budget would come from the room of other dumps and transfers.
 */
import { readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { bytesOnDisk } from '../../checkpoint/stored.ts'
import type { Clock } from '../../kube/clock.ts'
import { isGone, unlessGone } from '../container/process.ts'
import { volumesTooLarge } from './volumes-limit.ts'

/** Pause between two measurements, ms: `most` while much room is left, `least` while there is hardly any. */
const lookMs = { most: 50, least: 2 }
/** Bytes that a fast dump writes in a millisecond: they tell how soon the rest of the room may be full. */
const fastBytes = 2 * 1024 * 1024
/**
 * Pause for each ms of a measurement: a draft of very many files takes long to measure, and its pod is stopped
 * meanwhile.
 */
const pauseForEachMs = 5

/** Size of a draft so far, bytes. */
export interface DraftBytes {
  /** Bytes of the archives of layers, volumes and /dev/shm. */
  readonly archived: number
  /** Bytes of all files, as the budget counts them. */
  readonly written: number
}

export interface DraftLimits {
  /** Limit of `archived`. */
  readonly volumeBytes: number
  /** Reserves room for `written`. @returns how much larger it could get. @throws CheckpointError StoreFull */
  readonly setAside: (bytes: number) => number
  /** Default: measures the files. */
  readonly measure?: ((directory: string) => Promise<DraftBytes>) | undefined
}

/**
 * Runs a dump into a directory, and aborts it when the draft exceeds a limit.
 *
 * @throws AgentError VolumesTooLarge, CheckpointError StoreFull, the errors of the dump.
 */
export async function withinLimits<T>(
  directory: string,
  { volumeBytes, setAside, measure = bytesInDraft }: DraftLimits,
  clock: Clock,
  signal: AbortSignal,
  dump: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const exceeded = new AbortController()
  const over = new AbortController()
  const stop = AbortSignal.any([signal, exceeded.signal])
  const look = async () => {
    const { archived, written } = await measure(directory)
    if (archived > volumeBytes) throw volumesTooLarge(archived, volumeBytes)
    return setAside(written)
  }
  const watch = async () => {
    const either = AbortSignal.any([stop, over.signal])
    for (let pauseMs = lookMs.least; !either.aborted; ) {
      await clock.sleep(pauseMs, either).catch(() => undefined)
      if (either.aborted) return
      const startedAt = clock.monotonic()
      const soonMs = Math.min(lookMs.most, (await look()) / fastBytes)
      pauseMs = Math.max(lookMs.least, soonMs, pauseForEachMs * (clock.monotonic() - startedAt))
    }
  }
  const watching = watch().catch((error: unknown) => exceeded.abort(error))
  try {
    const result = await dump(stop)
    await look()
    return result
  } catch (error) {
    if (exceeded.signal.aborted && !signal.aborted) throw exceeded.signal.reason
    throw error
  } finally {
    over.abort()
    await watching
  }
}

/** Size of an empty archive; see the driver's files. */
const emptyBytes = 10_240

const isArchive = (path: string): boolean =>
  /^(containers\/[^/]+\/layer\.tar|volumes\/[^/]+\.tar|shm\.tar)$/.test(path)

/** Measures the files of a draft. Files that vanish meanwhile do not count. */
export async function bytesInDraft(directory: string): Promise<DraftBytes> {
  let archived = 0
  const files: { readonly size: number }[] = []
  for (const path of await filesBelow(directory)) {
    const size = (await unlessGone(stat(join(directory, path))))?.size ?? 0
    files.push({ size })
    if (isArchive(path) && size > emptyBytes) archived += size
  }
  return { archived, written: bytesOnDisk(files) }
}

async function filesBelow(directory: string, below = ''): Promise<string[]> {
  const entries = await readdir(join(directory, below), { withFileTypes: true }).catch((error: unknown) => {
    if (isGone(error)) return []
    throw error
  })
  const paths: string[] = []
  for (const entry of entries) {
    const path = join(below, entry.name)
    if (entry.isDirectory()) paths.push(...(await filesBelow(directory, path)))
    else paths.push(path)
  }
  return paths
}
