import { mkdir, opendir, readFile, stat, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { CheckpointError } from '../../checkpoint/errors.ts'
import { onHost, type ProcFs, refOf, unlessGone } from '../discover/process.ts'
import { AgentError } from '../errors.ts'
import type { SentinelClient, SpawnRequest } from '../sentinel.ts'
import { bringOptions } from './could-make.ts'
import { programsDescriptor, roomEnvironment } from './criu.ts'
import { livingRights, type Rights } from './rights.ts'
import type { Save } from './saves.ts'

export interface FilesRun {
  readonly deadlineMs: number
  /** A directory for what belongs to nothing else. */
  readonly scratch: string
  /** No file that is written gets larger than so many bytes, or than there is room for. Default: any size. */
  readonly roomBytes?: number | undefined
  readonly signal: AbortSignal
}

/** What is started before everybody stands, so that nobody stands still for its start. */
export interface Gated {
  /** Name of the stop that waits for its end. */
  readonly stop: string
  /** In which `goFile` will be. */
  readonly directory: string
}

/** Saves and brings back the files that belong to a pod's memory. */
export interface Files {
  /** Whether there is nothing to be saved; never so of a layer, which has mount points in it. */
  isEmpty(what: Save): Promise<boolean>
  /** Says that there was nothing. */
  saveNothing(what: Save): Promise<void>
  /** @throws AgentError LayerFailed; DumpExpired when it is gated; CheckpointError StoreFull */
  save(what: Save, run: FilesRun, gated?: Gated): Promise<void>
  /**
   * Makes the place that `what` names hold what was saved in its files, and nothing else of its own. A generation that
   * has nothing of it changes nothing. Nothing comes that gives more rights than the containers could have made there.
   *
   * @returns what was left out for that: at most some lines.
   * @throws AgentError LayerFailed, ProcessGone
   */
  apply(what: Save, run: FilesRun): Promise<readonly string[]>
}

export interface FilesOptions {
  readonly sentinel: SentinelClient
  readonly fs: ProcFs
  /** With `layer` and `criu/tar`. */
  readonly programs: string
}

const descriptors = { directory: 201, archive: 202, list: 203, own: 204, gate: 205 } as const
/** Exit code of `layer apply`: see UnderstudySpoiled. */
const spoiled = 3
const layer = `/proc/self/fd/${programsDescriptor}/layer`

/** Two blocks of zeros, padded as tar does. */
const emptyArchive = Buffer.alloc(10_240)

type Spawned = Pick<SpawnRequest, 'target' | 'files' | 'arguments' | 'during'>

/** Through the program `layer`, which enters containers before it touches anything of theirs. */
export function createFiles({ sentinel, fs, programs }: FilesOptions): Files {
  /** In whose namespaces the directory is one that can be entered. */
  const homeOf = (what: Save) => (what.kind === 'shm' ? Promise.resolve(what.init) : refOf(fs, fs.host))

  /** @returns what was said. */
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
        files: [{ fd: programsDescriptor, path: programs, mode: 'd' }, ...spawned.files],
      },
      signal,
    )
    const said = (await readFile(log, 'utf8').catch(() => '')).trim()
    if (end.code === 0) return said
    // Who waited for the stop cannot be told from who took too long.
    if (end.expired && spawned.during !== undefined)
      throw new AgentError('DumpExpired', `${nameOf(what)}, ${deadlineMs} ms`)
    if (end.code === spoiled) throw new AgentError('UnderstudySpoiled', nameOf(what))
    // The second is what tar says of a write that still got in to a part.
    if (roomBytes !== undefined && /File too large|Wrote only/.test(said))
      throw new CheckpointError('StoreFull', `${nameOf(what)}: there is room for ${roomBytes} bytes`)
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
    // Written anew when a save is repeated.
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
          ...[layer, 'save', ...(gated === undefined ? [] : ['--gate'])],
          ...(what.kind === 'layer' ? ['--layer', ...excluded(what.exclude)] : []),
        ],
      },
      run,
    )
  }

  /** What the layer of an understudy has now, so that what the generation has not can be taken away. */
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
        arguments: [layer, 'list', '--of', String(what.init.pid), ...excluded(what.exclude)],
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
      const command = [layer, 'apply', '--directory', ...options]
      return linesOf(await spawn(what, { target: await homeOf(what), files, arguments: command }, run))
    }
    const own = join(run.scratch, `${keyOf(what)}.own`)
    await listOwn(what, own, run)
    const files = [...saved, { fd: descriptors.own, path: own, mode: 'r' } as const]
    return linesOf(
      await spawn(what, { target: what.init, files, arguments: [layer, 'apply', ...options] }, run),
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

/** Of one pod: a file name. */
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

/** Tar may say something, too. */
const linesOf = (said: string): string[] =>
  said
    .split('\n')
    .filter(line => line.startsWith('layer: '))
    .map(line => line.slice('layer: '.length))

const excluded = (paths: readonly string[]) => paths.flatMap(path => ['--exclude', path])

const isEmptyDirectory = async (fs: ProcFs, directory: string): Promise<boolean> => {
  await using opened = await opendir(onHost(fs, directory))
  return (await opened.read()) === null
}

const sizeIfThere = async (path: string): Promise<number | undefined> => (await unlessGone(stat(path)))?.size
