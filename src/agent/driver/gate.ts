import { watch } from 'node:fs'
import { access, writeFile } from 'node:fs/promises'
import { join } from 'node:path'

/**
 * A CRIU that is started but has not looked at any process yet: starting takes longer than dumping a small application,
 * which need not stand still for it. What is loaded into CRIU (native/preload/gate.c) keeps the other side, in CRIU's work
 * directory.
 */
export interface Gate {
  /** The file that opens it, whoever makes it. */
  readonly path: string
  /** Resolves when CRIU is there, and when `ended` is settled, for then it will not come. */
  ready(ended: Promise<unknown>): Promise<void>
  /** Whether CRIU has come to it. */
  wasReached(): Promise<boolean>
}

/** What opens a gate in this directory, CRIU's or that of `layer save --gate`. */
export const goFile = (directory: string): string => join(directory, 'go')

/** To be called before CRIU is started. */
export async function createGate(work: string): Promise<Gate> {
  const path = goFile(work)
  await writeFile(join(work, 'gate'), '')
  return {
    path,
    async ready(ended) {
      const { promise, resolve } = Promise.withResolvers<void>()
      const watcher = watch(work, (_, name) => {
        if (name === 'ready') resolve()
      })
      watcher.once('error', resolve) // the directory is gone: so is CRIU
      ended.then(
        () => resolve(),
        () => resolve(),
      )
      try {
        // It may have come before the watch began.
        if (!(await exists(join(work, 'ready')))) await promise
      } finally {
        watcher.close()
      }
    },
    wasReached: () => exists(join(work, 'ready')),
  }
}

async function exists(path: string): Promise<boolean> {
  try {
    await access(path)
    return true
  } catch {
    return false
  }
}
