import { watch } from 'node:fs'
import { access, writeFile } from 'node:fs/promises'
import { join } from 'node:path'

/**
 * A gate for a CRIU that has started but has not looked at any process yet. Starting takes longer than dumping a small
 * application, which need not be stopped for it. The CRIU shim (native/criu-shim/gate.c) implements the other side,
 * in CRIU's work directory.
 */
export interface CriuGate {
  /** The file that opens the gate; any process may create it. */
  readonly path: string
  /** Resolves when CRIU has reached the gate, or when `ended` settles, since CRIU then cannot reach it any more. */
  ready(ended: Promise<unknown>): Promise<void>
  /** True if CRIU has reached the gate. */
  wasReached(): Promise<boolean>
}

/** Returns the file that opens a gate in this directory: CRIU's, or that of `rootfs save --gate`. */
export const goFile = (directory: string): string => join(directory, 'go')

/** Creates the gate; call it before CRIU starts. */
export async function createCriuGate(work: string): Promise<CriuGate> {
  const path = goFile(work)
  await writeFile(join(work, 'gate'), '')
  return {
    path,
    async ready(ended) {
      const { promise, resolve } = Promise.withResolvers<void>()
      const watcher = watch(work, (_, name) => {
        if (name === 'ready') resolve()
      })
      watcher.once('error', resolve) // the directory is gone, and so is CRIU
      ended.then(
        () => resolve(),
        () => resolve(),
      )
      try {
        // CRIU may have reached the gate before the watch began.
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
