import { mkdir, opendir, readFile, stat, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { AgentError } from '../../api/agent-errors.ts'
import { CheckpointError } from '../../checkpoint/errors.ts'
import { descriptors } from '../container/descriptors.ts'
import { onHost, type ProcFs, refOf, unlessGone } from '../container/process.ts'
import type { SentinelClient, SpawnRequest } from '../sentinel/client.ts'
import { bringOptions } from './could-make.ts'
import { roomEnvironment } from './criu.ts'
import { livingRights, type Rights } from './rights.ts'
import type { Save } from './saves.ts'

export interface FilesRun {
  readonly deadlineMs: number
  /** A directory for temporary files. */
  readonly scratch: string
  /** Most bytes of a file that is written. Default: any size. */
  readonly roomBytes?: number | undefined
  readonly signal: AbortSignal
}

/** A save that starts before the stop, so that its start does not prolong the stop. */
export interface Gated {
  /** Name of the stop that waits for the end of the save. */
  readonly stop: string
  /** Directory in which `goFile` will appear. */
  readonly directory: string
}

/** Saves and restores the files that belong to a pod's memory. */
export interface Files {
  /** True if there is nothing to save. Always false for a layer, which contains mount points. */
  isEmpty(what: Save): Promise<boolean>
  /** Writes an empty archive and list. */
  saveNothing(what: Save): Promise<void>
  /** @throws AgentError LayerFailed; DumpExpired when it is gated; CheckpointError StoreFull */
  save(what: Save, run: FilesRun, gated?: Gated): Promise<void>
  /**
   * Replaces the contents of the place that `what` names by the files that were saved. Changes nothing if the
   * generation has no files of it. Leaves out rights that the containers could not have given to files there
   * themselves.
   *
   * @returns the files that came without rights: a few lines at most.
   * @throws AgentError LayerFailed, ProcessGone
   */
  apply(what: Save, run: FilesRun): Promise<readonly string[]>
}

export interface FilesOptions {
  readonly sentinel: SentinelClient
  readonly fs: ProcFs
  /** Contains `rootfs` and `criu/tar`. */
  readonly programs: string
}

/** Exit code of `rootfs apply`: see UnderstudySpoiled. */
const spoiled = 3
const rootfs = `/proc/self/fd/${descriptors.programs}/rootfs`

/** Two blocks of zeros, padded as tar does. */
const emptyArchive = Buffer.alloc(10_240)

type Spawned = Pick<SpawnRequest, 'target' | 'files' | 'arguments' | 'during'>

/**
 * Creates Files that run the program `rootfs`, which enters a container before it touches any of the container's files.
 */
export function createFiles({ sentinel, fs, programs }: FilesOptions): Files {
  /** Returns the process in whose namespaces the directory can be entered. */
  const homeOf = (what: Save) => (what.kind === 'shm' ? Promise.resolve(what.init) : refOf(fs, fs.host))

  /** @returns the program's output. */
  async function spawn(what: Save, spawned: Spawned, { deadlineMs, scratch, roomBytes, signal }: FilesRun) {
    const log = join(scratch, `${keyOf(what)}.log`)
    const end = await sentinel.spawn(
      {
        ...spawned,
        namespaces: 'keep',
        rights: 'Files',
        cgroup: 'stay',
        deadlineMs,
        log,
        environment: roomEnvironment(roomBytes),
        files: [{ fd: descriptors.programs, path: programs, mode: 'd' }, ...spawned.files],
      },
      signal,
    )
    const said = (await readFile(log, 'utf8').catch(() => '')).trim()
    if (end.code === 0) return said
    // A save that still waited for the stop looks the same as a save that took too long.
    if (end.expired && spawned.during !== undefined)
      throw new AgentError('DumpExpired', `${nameOf(what)}, ${deadlineMs} ms`)
    if (end.code === spoiled) throw new AgentError('UnderstudySpoiled', nameOf(what))
    // Tar prints the second message if a part of the write still fitted.
    if (roomBytes !== undefined && /File too large|Wrote only/.test(said))
      throw new CheckpointError('StoreFull', `${nameOf(what)}: only ${roomBytes} bytes are free`)
    const how = end.expired
      ? `longer than ${deadlineMs} ms`
      : `exit code ${end.code ?? `signal ${end.signal}`}`
    throw new AgentError('LayerFailed', `${nameOf(what)}: ${how}; ${said.slice(-300)}`)
  }

  const isEmpty = async (what: Save) => what.kind !== 'layer' && (await isEmptyDirectory(fs, what.directory))

  async function saveNothing(what: Save): Promise<void> {
    await mkdir(dirname(what.archive), { recursive: true, mode: 0o700 })
    await writeFile(what.archive, emptyArchive, { mode: 0o600 })
    await writeFile(what.list, '', { mode: 0o600 })
  }

  async function save(what: Save, run: FilesRun, gated?: Gated): Promise<void> {
    await mkdir(dirname(what.archive), { recursive: true, mode: 0o700 })
    const directory = what.kind === 'layer' ? what.upper : what.directory
    // Truncates the files when a save is repeated.
    for (const path of [what.archive, what.list]) await writeFile(path, '', { mode: 0o600 })
    await spawn(
      what,
      {
        target: await homeOf(what),
        files: [
          { fd: descriptors.directory, path: directory, mode: 'd' },
          { fd: descriptors.archive, path: what.archive, mode: 'w' },
          { fd: descriptors.list, path: what.list, mode: 'w' },
          ...(gated === undefined
            ? []
            : [{ fd: descriptors.gate, path: gated.directory, mode: 'd' } as const]),
        ],
        ...(gated !== undefined && { during: gated.stop }),
        arguments: [
          ...[rootfs, 'save', ...(gated === undefined ? [] : ['--gate'])],
          ...(what.kind === 'layer' ? ['--layer', ...excluded(what.exclude)] : []),
        ],
      },
      run,
    )
  }

  /**
   * Lists the files that the understudy's layer has now, so that `rootfs apply` can delete files that the generation
   * lacks.
   */
  async function listOwn(what: Save & { readonly kind: 'layer' }, own: string, run: FilesRun): Promise<void> {
    await writeFile(own, '', { mode: 0o600 })
    await spawn(
      what,
      {
        target: await homeOf(what),
        files: [
          { fd: descriptors.directory, path: what.upper, mode: 'd' },
          { fd: descriptors.list, path: own, mode: 'w' },
        ],
        arguments: [rootfs, 'list', '--of', String(what.init.pid), ...excluded(what.exclude)],
      },
      run,
    )
  }

  async function apply(what: Save, run: FilesRun): Promise<readonly string[]> {
    const listed = await sizeIfThere(what.list)
    if (listed === undefined) return []
    const saved = [
      { fd: descriptors.archive, path: what.archive, mode: 'r' },
      { fd: descriptors.list, path: what.list, mode: 'r' },
    ] as const
    if (what.kind !== 'layer' && listed === 0 && (await isEmpty(what))) return []
    const options = bringOptions(await makersOf(what))
    if (what.kind !== 'layer') {
      const files = [{ fd: descriptors.directory, path: what.directory, mode: 'd' } as const, ...saved]
      const command = [rootfs, 'apply', '--directory', ...options]
      return linesOf(await spawn(what, { target: await homeOf(what), files, arguments: command }, run))
    }
    const own = join(run.scratch, `${keyOf(what)}.own`)
    await listOwn(what, own, run)
    const files = [...saved, { fd: descriptors.present, path: own, mode: 'r' } as const]
    return linesOf(
      await spawn(what, { target: what.init, files, arguments: [rootfs, 'apply', ...options] }, run),
    )
  }

  async function makersOf(what: Save): Promise<Rights[]> {
    const makers = what.kind === 'layer' ? [what.init] : what.writers
    return Promise.all(
      makers.map(async ({ pid }) => {
        const rights = await livingRights(fs, pid)
        if (rights === undefined) throw new AgentError('ProcessGone', nameOf(what))
        return rights
      }),
    )
  }

  return { isEmpty, saveNothing, save, apply }
}

/** Returns a file name, unique within a pod. */
function keyOf(what: Save): string {
  switch (what.kind) {
    case 'layer':
      return `layer-${what.container}`
    case 'volume':
      return `volume-${what.name}`
    case 'shm':
      return 'shm'
  }
}

function nameOf(what: Save): string {
  switch (what.kind) {
    case 'layer':
      return `container ${what.container}`
    case 'volume':
      return `volume ${what.name}`
    case 'shm':
      return '/dev/shm'
  }
}

/** Ignores the output of tar. */
const linesOf = (said: string): string[] =>
  said
    .split('\n')
    .filter(line => line.startsWith('rootfs: '))
    .map(line => line.slice('rootfs: '.length))

const excluded = (paths: readonly string[]) => paths.flatMap(path => ['--exclude', path])

const isEmptyDirectory = async (fs: ProcFs, directory: string): Promise<boolean> => {
  await using opened = await opendir(onHost(fs, directory))
  return (await opened.read()) === null
}

const sizeIfThere = async (path: string): Promise<number | undefined> => (await unlessGone(stat(path)))?.size
