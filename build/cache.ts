import { createHash } from 'node:crypto'
import { access, mkdir, mkdtemp, rename, rm } from 'node:fs/promises'
import { homedir } from 'node:os'
import { dirname, join } from 'node:path'

/** Returns the directory for build results: outside the checkout, so that a clean clone finds a warm cache. */
export function cacheRoot(env: NodeJS.ProcessEnv = process.env): string {
  return (
    env['UNDERSTUDY_CACHE'] ??
    join(env['XDG_CACHE_HOME'] ?? join(env['HOME'] ?? homedir(), '.cache'), 'understudy')
  )
}

/** Returns a hex key of a result's inputs; the order of object keys counts. */
export function keyOf(inputs: unknown): string {
  return createHash('sha256').update(JSON.stringify(inputs)).digest('hex').slice(0, 24)
}

/**
 * Returns the directory `target`; if it does not exist, `build` makes it first. `build` fills a scratch directory
 * beside it, which is renamed when complete: a crash or Ctrl-C never leaves half a result under the final name.
 */
export async function cachedDirectory(
  target: string,
  build: (scratch: string) => Promise<void>,
): Promise<string> {
  if (await exists(target)) return target
  await mkdir(dirname(target), { recursive: true })
  const scratch = await mkdtemp(`${target}.work-`)
  try {
    await build(scratch)
    await rename(scratch, target).catch(async (error: unknown) => {
      // Another process was first with the same inputs: its result is as good as ours.
      if (!(await exists(target))) throw error
    })
  } finally {
    await rm(scratch, { recursive: true, force: true })
  }
  return target
}

export async function exists(path: string): Promise<boolean> {
  try {
    await access(path)
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return false
    throw error
  }
}
