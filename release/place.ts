import { chmod, mkdir, mkdtemp, rename, rm } from 'node:fs/promises'
import { dirname } from 'node:path'

/**
 * Fills a directory beside its place, and then renames it: a directory in its place is complete. Two processes that fill the same
 * one do not meet, and the second one fails.
 *
 * @throws if the directory exists and is not empty
 */
export async function inPlaceAtOnce(directory: string, fill: (work: string) => Promise<void>): Promise<void> {
  await mkdir(dirname(directory), { recursive: true })
  const work = await mkdtemp(`${directory}.work-`)
  try {
    await fill(work)
    await chmod(work, 0o755)
    await rename(work, directory)
  } finally {
    await rm(work, { recursive: true, force: true })
  }
}
