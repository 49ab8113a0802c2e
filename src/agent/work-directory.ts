import { readdir, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { isGone } from './discover/process.ts'

/** Longer than any deadline of a dump or a restore, ms. */
const oldMs = 3_600_000

/**
 * Sweeps what an agent that died has left of its dumps and restores. What has not been there for long may be in use: a
 * CRIU that was at work when its agent died is let finish. How long is counted here and not by the times of files: a wall
 * clock jumps, of a machine that wakes up by hours, and what memory is still being read from would go.
 *
 * @param isInUse of a directory's name: by whatever is known to live.
 * @param removed told for the path of each that is gone.
 * @returns a function that sweeps, and says how many it has removed.
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
