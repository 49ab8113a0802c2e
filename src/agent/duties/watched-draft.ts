/**
 * A draft is watched while it is written. What a tenant makes of it nobody knows before: its processes ask for memory, and
 * its volumes fill, until they stand. No limit of a file bounds it, for there may be any number of files, and what goes
 * beyond the budget is taken from others, whose dumps and transfers have been given their room.
 */
import { readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { bytesOnDisk } from '../../checkpoint/stored.ts'
import type { Clock } from '../../kube/clock.ts'
import { isGone, unlessGone } from '../discover/process.ts'
import { volumesTooLarge } from './volumes-limit.ts'

/** Between two looks at what has been written, ms: where much room is left, and where there is hardly any. */
const lookMs = { most: 50, least: 2 }
/** What one that writes fast writes in a millisecond, bytes: so soon may be full what is left. */
const fastBytes = 2 * 1024 * 1024
/** A draft of very many files takes time to be looked at, while its pod stands still. */
const pauseForEachMs = 5

/** What is in a draft so far, bytes. */
export interface DraftBytes {
  /** Of layers, volumes and /dev/shm. */
  readonly archived: number
  /** Of all files, as the budget counts them. */
  readonly written: number
}

export interface DraftLimits {
  /** Of `archived`. */
  readonly volumeBytes: number
  /** Sets room aside for `written`. @returns how much more it could be. @throws CheckpointError StoreFull */
  readonly setAside: (bytes: number) => number
  /** Default: as its files say. */
  readonly measure?: ((directory: string) => Promise<DraftBytes>) | undefined
}

/**
 * Runs a dump into a directory and ends it when there is more than it may have.
 *
 * @throws AgentError VolumesTooLarge, CheckpointError StoreFull; what the dump throws.
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

/** An archive of nothing; see the driver's files. */
const emptyBytes = 10_240

const isArchive = (path: string): boolean =>
  /^(containers\/[^/]+\/layer\.tar|volumes\/[^/]+\.tar|shm\.tar)$/.test(path)

/** Files that go away meanwhile are not counted. */
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
