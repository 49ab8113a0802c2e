/** The key of a node for its half of the keys for generations on its disk. It exists only in memory, and ends with the boot. */
import { link, readFile, rm, writeFile } from 'node:fs/promises'
import { type DiskKey, diskHalfLength, diskKeyOf } from '../../api/disk-half.ts'
import { isSystemError } from '../../checkpoint/stored.ts'
import type { Random } from '../../kube/random.ts'

/**
 * Loads the key in a file, or makes one there.
 * @param path a file in a tmpfs: on a disk, it would be stolen with the files that it protects.
 * @throws Error of the file system; RangeError if the file is no key.
 */
export async function loadDiskKey(path: string, random: Random): Promise<DiskKey> {
  const seed = (await readSeed(path)) ?? (await makeSeed(path, random))
  if (seed.length !== diskHalfLength) throw new RangeError(`${path} must have ${diskHalfLength} bytes`)
  return diskKeyOf(seed)
}

async function readSeed(path: string): Promise<Buffer | undefined> {
  try {
    return await readFile(path)
  } catch (error) {
    if (isSystemError(error, 'ENOENT')) return undefined
    throw error
  }
}

async function makeSeed(path: string, random: Random): Promise<Buffer> {
  const scratch = `${path}.${Buffer.from(random.bytes(8)).toString('hex')}`
  try {
    await writeFile(scratch, random.bytes(diskHalfLength), { mode: 0o600, flag: 'wx' })
    // link instead of rename: if two agents start at once (an upgrade), both must use the key that came first.
    await link(scratch, path)
  } catch (error) {
    if (!isSystemError(error, 'EEXIST')) throw error
  } finally {
    await rm(scratch, { force: true })
  }
  return readFile(path)
}
