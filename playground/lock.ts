import { randomUUID } from 'node:crypto'
import { link, mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { identify, isAlive, type ProcessIdentity } from './process.ts'

export interface LockOptions {
  readonly signal?: AbortSignal | undefined
  /** Called once, with the holder's pid, if the lock is not free. */
  readonly onWait?: (holder: number) => void
}

/**
 * Runs `work` while holding the lock file `path`, after waiting for other processes that hold it. The file names its
 * holder. If that process has ended, the lock is stale and is taken over.
 */
export async function withLock<T>(
  path: string,
  work: () => Promise<T>,
  options: LockOptions = {},
): Promise<T> {
  await mkdir(dirname(path), { recursive: true })
  const self = await identify(process.pid)
  if (self === undefined) throw new Error('/proc does not show this process')
  // Another lock of this same process counts as another holder.
  const mine = `${path}.${randomUUID()}`
  await writeFile(mine, JSON.stringify(self))
  try {
    for (let waiting = false; ; ) {
      options.signal?.throwIfAborted()
      if (await linked(mine, path)) break
      const holder = await holderOf(path)
      if (holder === undefined) continue
      if (!(await isAlive(holder))) {
        await breakLock(path, holder)
        continue
      }
      if (!waiting) options.onWait?.(holder.pid)
      waiting = true
      await sleep(200, undefined, options.signal ? { signal: options.signal } : {})
    }
  } finally {
    await rm(mine, { force: true })
  }
  try {
    return await work()
  } finally {
    await rm(path, { force: true })
  }
}

/**
 * link(2) fails if the name exists, and the file appears with its whole content, so no reader sees a half-written file.
 */
async function linked(from: string, to: string): Promise<boolean> {
  try {
    await link(from, to)
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false
    throw error
  }
}

async function holderOf(path: string): Promise<ProcessIdentity | undefined> {
  try {
    return JSON.parse(await readFile(path, 'utf8')) as ProcessIdentity
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}

/** Between our check and the rename a third process may have replaced the stale file: then put its file back. */
async function breakLock(path: string, stale: ProcessIdentity): Promise<void> {
  const aside = `${path}.${randomUUID()}`
  try {
    await rename(path, aside)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return
    throw error
  }
  const taken = await holderOf(aside)
  if (taken !== undefined && (taken.pid !== stale.pid || taken.startTime !== stale.startTime)) {
    await linked(aside, path)
  }
  await rm(aside, { force: true })
}
