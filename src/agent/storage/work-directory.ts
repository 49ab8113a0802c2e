import { readdir, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { isGone } from '../container/process.ts'

/** Longer than any deadline of a dump or a restore, ms. */
const oldMs = 3_600_000

/**
 * Creates a sweep of the directories that dead agents have left of their dumps and restores. A young directory may be
 * in use: a CRIU at work when its agent died can complete its work. The age is measured here and not by the times of
 * files: a wall clock jumps, by hours on a machine that wakes up, and files from which pages are still read would be
 * lost.
 *
 * @param isInUse whether a known clone uses the directory with this name.
 * @param removed called with the path of each removed directory.
 * @returns a function that sweeps, and resolves with the number of removed directories.
 */
export function createWorkDirectorySweep(
  directory: string,
  now: () => number,
  isInUse: (name: string) => Promise<boolean>,
  removed: (path: string) => void = () => undefined,
): () => Promise<number> {
  const seen = new Map<string, { readonly inode: number; readonly since: number }>()
  return async () => {
    let count = 0
    const names = await readdir(directory)
    for (const name of [...seen.keys()]) if (!names.includes(name)) seen.delete(name)
    for (const name of names) {
      const path = join(directory, name)
      try {
        const { ino: inode } = await stat(path)
        const known = seen.get(name)
        if (known?.inode !== inode) seen.set(name, { inode, since: now() })
        if (known?.inode !== inode || now() - known.since < oldMs || (await isInUse(name))) continue
      } catch (error) {
        if (isGone(error)) continue
        throw error
      }
      await rm(path, { recursive: true, force: true })
      seen.delete(name)
      removed(path)
      count += 1
    }
    return count
  }
}
