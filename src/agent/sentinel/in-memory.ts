import { stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { ProcFs } from '../container/process.ts'
import { isTmpfs } from '../container/tmpfs.ts'
import { type InstalledPrograms, type InstallOptions, installAgain } from './install.ts'
import { runOnHost } from './on-host.ts'

export interface InMemoryOptions extends InstallOptions {
  readonly fs: ProcFs
  readonly log: { warn(fields: object, message: string): void }
  readonly signal: AbortSignal
}

/**
 * Installs the programs again in a tmpfs at `to`, which is mounted on the host for them. While they run, an application
 * is stopped and clients wait. Each runs only briefly, and a node short of memory first evicts files that no process
 * has open. Falls back to the programs on the disk if the tmpfs cannot be mounted.
 *
 * @param onDisk the programs that mount it, installed from the same place.
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
  // Checks the result in this container: mounts of the host may not reach it.
  if (await isTmpfsOfItsOwn(install.to)) return installAgain(onDisk, install)
  log.warn({ directory: install.to, said }, 'cannot copy the programs to memory, so they run from the disk')
  return onDisk
}

/** Compares devices: the parent may be a tmpfs too, but mounted noexec. */
async function isTmpfsOfItsOwn(directory: string): Promise<boolean> {
  if (!(await isTmpfs(directory))) return false
  const [here, above] = await Promise.all([stat(directory), stat(dirname(directory))])
  return here.dev !== above.dev
}
