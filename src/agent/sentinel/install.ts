import { createHash } from 'node:crypto'
import { constants, type Dirent } from 'node:fs'
import { access, copyFile, mkdir, open, readdir, readFile, rename, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { AgentError } from '../../api/agent-errors.ts'
import type { Random } from '../../kube/random.ts'
import { unlessGone } from '../container/process.ts'

/** The agent's native programs, installed on the node. */
export interface InstalledPrograms {
  /** Contains what native/build.ts builds for a node, such as `nsrun` and `criu/`; the same path on the host and in this container. */
  readonly directory: string
  /** SHA-256 over names, modes and contents, hex. */
  readonly digest: string
  /** Debian's version of the contained CRIU. */
  readonly criuVersion: string
}

export interface InstallOptions {
  /** Directory in the agent's image: `/opt/understudy`. */
  readonly from: string
  /** A directory of the host with the same path in this container: `/var/lib/understudy/bin`, `/run/understudy/bin`. */
  readonly to: string
  readonly random: Random
}

/**
 * Copies the programs to the node: the sentinel and its programs must exist while the agent's container does not. The
 * directory is named after its content and appears by a rename, so it is complete or absent. An agent of another
 * version uses another directory.
 *
 * @throws AgentError BinariesMissing
 */
export async function installPrograms({ from, to, random }: InstallOptions): Promise<InstalledPrograms> {
  const files = await listFiles(from)
  for (const name of ['nsrun', 'sentinel', 'criu/criu', 'criu/ld.so', 'criu/criu-shim.so'])
    if (!files.some(file => file.path === name)) throw new AgentError('BinariesMissing', join(from, name))
  return place({ from, to, random }, files, await digestOf(from, files))
}

/** Installs the same programs in another place, without computing the digest again. */
export async function installAgain(
  { digest }: InstalledPrograms,
  options: InstallOptions,
): Promise<InstalledPrograms> {
  return place(options, await listFiles(options.from), digest)
}

async function place(
  { from, to, random }: InstallOptions,
  files: readonly ProgramFile[],
  digest: string,
): Promise<InstalledPrograms> {
  const directory = join(to, digest.slice(0, 32))
  if (!(await exists(directory))) {
    const scratch = join(to, `.new-${Buffer.from(random.bytes(8)).toString('hex')}`)
    try {
      await copyTree(from, scratch, files)
      await rename(scratch, directory)
    } catch (error) {
      await rm(scratch, { recursive: true, force: true })
      // Another agent of this node was faster: its copy is identical.
      if (!(await exists(directory))) throw error
    }
  }
  return { directory, digest, criuVersion: await criuVersionOf(directory) }
}

/** Removes the copies of other versions, except those in use. The directory may be missing. */
export async function pruneInstalled(to: string, keep: readonly string[]): Promise<void> {
  for (const name of (await unlessGone(readdir(to))) ?? []) {
    const path = join(to, name)
    if (!keep.some(it => it === path || it.startsWith(`${path}/`)))
      await rm(path, { recursive: true, force: true })
  }
}

interface ProgramFile {
  /** Relative to the directory, with `/`. */
  readonly path: string
  readonly mode: number
}

async function listFiles(directory: string): Promise<ProgramFile[]> {
  let entries: Dirent[]
  try {
    entries = await readdir(directory, { recursive: true, withFileTypes: true })
  } catch (error) {
    throw new AgentError('BinariesMissing', directory, error)
  }
  const paths = entries.filter(it => it.isFile()).map(it => join(it.parentPath, it.name))
  const files = paths.map(async path => ({
    path: path.slice(directory.length).replace(/^\/+/, ''),
    // Keeps only the executable bit: other bits depend on the program that unpacked the image.
    mode: (await stat(path)).mode & 0o111 ? 0o755 : 0o644,
  }))
  return (await Promise.all(files)).sort((a, b) => (a.path < b.path ? -1 : 1))
}

async function digestOf(directory: string, files: readonly ProgramFile[]): Promise<string> {
  const whole = createHash('sha256')
  for (const { path, mode } of files) {
    const content = createHash('sha256').update(await readFile(join(directory, path)))
    whole.update(`${path}\0${mode.toString(8)}\0${content.digest('hex')}\n`)
  }
  return whole.digest('hex')
}

async function copyTree(from: string, to: string, files: readonly ProgramFile[]): Promise<void> {
  await mkdir(to, { recursive: true, mode: 0o755 })
  for (const { path, mode } of files) {
    const target = join(to, path)
    await mkdir(join(target, '..'), { recursive: true })
    await copyFile(join(from, path), target)
    const file = await open(target, constants.O_RDONLY)
    try {
      await file.chmod(mode)
      // Without fsync, a crash of the node after the rename could leave a directory of empty programs.
      await file.sync()
    } finally {
      await file.close()
    }
  }
}

async function criuVersionOf(directory: string): Promise<string> {
  const packages = await readFile(join(directory, 'criu/packages'), 'utf8')
  const found = /^criu_([^_]+)_/m.exec(packages)
  if (found === null) throw new AgentError('BinariesMissing', `${directory}/criu/packages does not list criu`)
  return found[1] ?? ''
}

async function exists(path: string): Promise<boolean> {
  try {
    await access(path)
    return true
  } catch {
    return false
  }
}
