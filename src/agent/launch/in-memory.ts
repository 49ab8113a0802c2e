import { stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { ProcFs } from '../discover/process.ts'
import { isTmpfs } from '../tmpfs.ts'
import { type InstalledPrograms, type InstallOptions, installAgain } from './install.ts'
import { runOnHost } from './on-host.ts'

export interface InMemoryOptions extends InstallOptions {
  readonly fs: ProcFs
  readonly log: { warn(fields: object, message: string): void }
  readonly signal: AbortSignal
}

/**
 * The programs once more in a tmpfs, `to`, which is mounted on the host for them: an application stands still for them,
 * and clients wait for them, but each runs for a moment only, and files that nobody has open are the first that a node
 * gives up when it needs memory. Where that cannot be had it is those on the disk that are used.
 *
 * @param onDisk what mounts it, installed from the same place.
 */
export async function programsInMemory(
  onDisk: InstalledPrograms,
  { fs, log, signal, ...install }: InMemoryOptions,
): Promise<InstalledPrograms> {
  const said = await runOnHost(
    onDisk.directory,
    [join(onDisk.directory, 'sentinel'), 'programs', install.to],
    { fs, signal },
  )
  // What counts is what is seen here: mounts of the host may not reach this container.
  if (await isTmpfsOfItsOwn(install.to)) return installAgain(onDisk, install)
  log.warn({ directory: install.to, said }, 'programs are run from the disk: none in memory')
  return onDisk
}

/** Its parent may lie in memory as well, but in a file system that nothing can be run from. */
async function isTmpfsOfItsOwn(directory: string): Promise<boolean> {
  if (!(await isTmpfs(directory))) return false
  const [here, above] = await Promise.all([stat(directory), stat(dirname(directory))])
  return here.dev !== above.dev
}
