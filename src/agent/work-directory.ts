import { readdir, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { isGone } from './discover/process.ts'

/** Longer than any deadline of a dump or a restore, ms. */
const oldMs = 3_600_000

/**
 * Removes what an agent that died has left of its dumps and restores. What is younger may be in use: a CRIU that was at
 * work when its agent died is let finish.
 * @param now ms of the wall clock, which files have their times from.
 * @returns how many were removed.
 */
export async function sweepWorkDirectory(directory: string, now: number): Promise<number> {
  let removed = 0
  for (const name of await readdir(directory)) {
    const path = join(directory, name)
    try {
      if (now - (await stat(path)).mtimeMs < oldMs) continue
    } catch (error) {
      if (isGone(error)) continue
      throw error
    }
    await rm(path, { recursive: true, force: true })
    removed += 1
  }
  return removed
}
