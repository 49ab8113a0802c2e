/** A complete generation on this node's disk. */
import { lstat, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Clock } from '../kube/clock.ts'
import type { HeldDigests } from './digest-memory.ts'
import { CheckpointError } from './errors.ts'
import { syncDirectory, writeDurably } from './files.ts'
import {
  arrivalName,
  formatManifest,
  type GenerationFile,
  type Manifest,
  manifestName,
  parseManifest,
} from './manifest.ts'

export interface Stored {
  readonly dir: string
  readonly manifest: Manifest
  /** Monotonic ms of this process. */
  readonly completedAt: number
  /** Ms from the stop of the pod, or earlier, until the generation was complete here. Its state's age is at most now - completedAt + this. */
  readonly pipelineMs: number
  /** Its digests in memory; absent: an earlier process has made it, or nothing has told them. */
  readonly held?: HeldDigests | undefined
}

export interface Clocks {
  readonly clock: Clock
  /** Milliseconds on a clock that continues when this process ends. */
  readonly uptime: () => number
}

/** Filesystems and tmpfs allocate whole pages. */
export const pageBytes = 4096

/** Bytes of the digest of a page. */
export const digestBytes = 32

/** Bytes of the digests of the pages of a file of this size. */
export const digestBytesOf = (size: number): number => Math.ceil(size / pageBytes) * digestBytes

const wholePages = (bytes: number) => Math.ceil(bytes / pageBytes) * pageBytes

/** Bytes that the files of a generation take up, with the digests of pages; the other files of the store are a page each. */
export function bytesOnDisk(files: readonly Pick<GenerationFile, 'size' | 'byPage'>[]): number {
  const digests = files.reduce((sum, { size, byPage }) => sum + (byPage ? digestBytesOf(size) : 0), 0)
  return files.reduce((sum, { size }) => sum + wholePages(size), 2 * pageBytes + wholePages(digests))
}

/** Writes the two files that make a directory of sealed files a generation. */
export async function writeManifest(dir: string, manifest: Manifest, arrival: Arrival): Promise<void> {
  await writeDurably(join(dir, arrivalName), JSON.stringify(arrival))
  await writeDurably(join(dir, manifestName), formatManifest(manifest))
  await syncDirectory(dir)
}

/** When a generation was complete here, on a clock that later processes of this machine share. */
interface Arrival {
  readonly uptimeMs: number
  readonly pipelineMs: number
}

/**
 * Takes over a generation of an earlier process. It checks sizes but not digests: a generation is verified before the
 * rename into place, and a tmpfs does not decay.
 *
 * @throws CheckpointError BadManifest; ENOENT when files are missing.
 */
export async function readStored(dir: string, clocks: Clocks): Promise<Stored> {
  const manifest = parseManifest(await readFile(join(dir, manifestName), 'utf8'))
  for (const { path, size } of manifest.files) {
    const found = await lstat(join(dir, path))
    if (!found.isFile() || found.size !== size)
      throw new CheckpointError('BadManifest', `${path} differs from its manifest`)
  }
  const now = clocks.clock.monotonic()
  const arrival = await readArrival(dir)
  const since = arrival === undefined ? -1 : clocks.uptime() - arrival.uptimeMs
  if (arrival !== undefined && since >= 0)
    return Object.freeze({ dir, manifest, completedAt: now - since, pipelineMs: arrival.pipelineMs })
  // After a reboot, or if the note is lost, only the source's wall clock is left.
  const pipelineMs = Math.max(clocks.clock.now() - Date.parse(manifest.takenAt), 0)
  return Object.freeze({ dir, manifest, completedAt: now, pipelineMs })
}

async function readArrival(dir: string): Promise<Arrival | undefined> {
  try {
    const { uptimeMs, pipelineMs } = JSON.parse(await readFile(join(dir, arrivalName), 'utf8'))
    if (Number.isFinite(uptimeMs) && Number.isFinite(pipelineMs)) return { uptimeMs, pipelineMs }
    return undefined
  } catch (error) {
    if (error instanceof SyntaxError || isSystemError(error, 'ENOENT')) return undefined
    throw error
  }
}

export function isSystemError(error: unknown, ...codes: readonly string[]): boolean {
  return error instanceof Error && 'code' in error && codes.includes(String(error.code))
}

/** A full filesystem means the same as a full budget: other files share it, or the budget is too large. */
export function noSpace(error: unknown): unknown {
  return isSystemError(error, 'ENOSPC', 'EDQUOT')
    ? new CheckpointError('StoreFull', 'the filesystem of the store is full', error)
    : error
}
