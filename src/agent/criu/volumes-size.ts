import { constants } from 'node:fs'
import { type FileHandle, lstat, open } from 'node:fs/promises'
import { AgentError } from '../../api/agent-errors.ts'
import { isGone, namesIn, onHost, type ProcFs } from '../container/process.ts'
import type { LocatedPod } from './memory-driver.ts'
import { planSaves } from './saves.ts'

/** A member of an archive has a header, and its content is padded to blocks. */
const blockBytes = 512

const deepest = 512

/**
 * Estimates the bytes that writable layers, emptyDirs and /dev/shm of a pod take up in archives; stops to count beyond
 * `upTo`. The pod runs meanwhile, so the estimate is of one moment.
 *
 * @throws AgentError Unsupported; the signal's reason.
 */
export async function sizeOfVolumes(
  fs: ProcFs,
  pod: LocatedPod,
  upTo: number,
  signal: AbortSignal,
): Promise<number> {
  let bytes = 0
  for (const save of await planSaves({ fs }, pod, '/')) {
    const directory = save.kind === 'layer' ? save.upper : save.directory
    bytes += await sizeOf(onHost(fs, directory), upTo - bytes, signal)
    if (bytes > upTo) break
  }
  return bytes
}

/** Opens directories without following links: a link that an app puts in the place of one leads nowhere. */
export async function sizeOf(
  directory: string,
  upTo: number,
  signal: AbortSignal,
  depth = 0,
): Promise<number> {
  signal.throwIfAborted()
  // Each directory is open until all below it has been seen. `rootfs` goes no deeper either.
  if (depth > deepest) throw new AgentError('Unsupported', `files lie more than ${deepest} directories deep`)
  let handle: FileHandle
  try {
    handle = await open(directory, constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW)
  } catch (error) {
    if (isGone(error) || isNoDirectory(error)) return 0
    throw error
  }
  try {
    const here = `/proc/self/fd/${handle.fd}`
    let bytes = 0
    for await (const name of namesIn(here)) {
      if (bytes > upTo) break
      bytes += await sizeOfMember(`${here}/${name}`, upTo - bytes, signal, depth)
    }
    return bytes
  } finally {
    await handle.close()
  }
}

async function sizeOfMember(path: string, upTo: number, signal: AbortSignal, depth: number): Promise<number> {
  try {
    const found = await lstat(path)
    if (found.isDirectory()) return blockBytes + (await sizeOf(path, upTo, signal, depth + 1))
    return blockBytes + (found.isFile() ? Math.ceil(found.size / blockBytes) * blockBytes : 0)
  } catch (error) {
    // The app runs meanwhile, and removes files.
    if (isGone(error)) return 0
    throw error
  }
}

const isNoDirectory = (error: unknown): boolean =>
  error instanceof Error && 'code' in error && (error.code === 'ENOTDIR' || error.code === 'ELOOP')
