import { mkdir, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fullName, type PackageFile, packageIndex } from './apt.ts'
import { type Architecture, imageArchitecture } from './architecture.ts'
import { cachedDirectory, cacheRoot, exists, keyOf } from './cache.ts'
import { downloadAll, downloadLocked, filesOf, LockedFilesGone, readLock } from './debian-lock.ts'
import { type PackageSet, packageSets, type SetName, SUITE } from './package-sets.ts'
import { run } from './run.ts'
import { type DebianArchives, debianArchives } from './sources.ts'

export interface PackageTree {
  /** Directory with the unpacked files (merged /usr), owned by the user that built it. */
  readonly root: string
  /** `name_version_arch` of every package in it, sorted. */
  readonly packages: readonly string[]
}

export interface DebianOptions {
  /** Default: this machine's. */
  readonly architecture?: Architecture
  readonly cacheDir?: string
  readonly signal?: AbortSignal
  readonly progress?: (message: string) => void
  /** True to fail if the archive has dropped a locked file. Default: true if `UNDERSTUDY_LOCKED` is 1. */
  readonly locked?: boolean
}

/** Where packages come from: this machine's mirror. */
export interface PackageSource {
  readonly archives: () => Promise<DebianArchives>
  readonly index: typeof packageIndex
}

const mirror: PackageSource = { archives: debianArchives, index: packageIndex }

const recipe = 3

/**
 * Returns the packages of one set, unpacked: exactly the files that the lock names, checked against its digests. It
 * reads no list of packages and needs no root. Maintainer scripts do not run.
 *
 * If the archive has dropped one of the files, the whole set is built from the files that its signed lists name now,
 * and a warning says so, even if the set comes from the cache. With `locked` the build fails instead.
 *
 * Cached under the lock's digests, so a warm build needs no network.
 *
 * @throws LockedFilesGone; for a file with another digest, in either mode
 */
export async function lockedPackages(name: SetName, options: DebianOptions = {}): Promise<PackageTree> {
  const { architecture = imageArchitecture() } = options
  return lockedTree(name, packageSets[name], filesOf(await readLock(), name, architecture), options)
}

/** Like `lockedPackages`, for any set. */
export async function lockedTree(
  name: string,
  set: PackageSet,
  files: readonly PackageFile[],
  options: DebianOptions = {},
  { archives, index }: PackageSource = mirror,
): Promise<PackageTree> {
  const { signal, cacheDir = cacheRoot(), locked = process.env['UNDERSTUDY_LOCKED'] === '1' } = options
  const { architecture = imageArchitecture() } = options
  const target = join(cacheDir, 'debian', `${name}-${keyOf({ set, files, recipe })}`)
  const substitute = `${target}-substitute`
  if (locked || (await exists(target)) || !(await exists(substitute))) {
    try {
      await cachedDirectory(target, async scratch => {
        options.progress?.(`Debian packages: ${set.names.join(' ')}`)
        const present = () => presentFiles(join(scratch, 'apt'), set, index, architecture, signal)
        const directory = join(scratch, 'archives')
        await unpack(
          scratch,
          files,
          await downloadLocked(files, await archives(), directory, present, signal),
          signal,
        )
      })
      return await readTree(target)
    } catch (error) {
      if (locked || !(error instanceof LockedFilesGone)) throw error
      await cachedDirectory(substitute, async scratch => {
        const directory = join(scratch, 'archives')
        await unpack(
          scratch,
          error.present,
          await downloadAll(error.present, await archives(), directory, signal),
          signal,
        )
        await writeFile(join(scratch, 'warning'), error.message)
      })
    }
  }
  const warn = options.progress ?? (text => process.stderr.write(`${text}\n`))
  warn(`WARNING: ${await readFile(join(substitute, 'warning'), 'utf8')}`)
  return readTree(substitute)
}

/**
 * Returns the present versions of the given Debian packages, with or without everything that they depend on: for tests
 * and playgrounds. Images that are shipped use `lockedPackages`.
 *
 * Cached by package names; delete `debian/` in the cache to get newer versions.
 */
export async function debianPackages(
  names: readonly string[],
  options: DebianOptions & { readonly dependencies?: boolean } = {},
): Promise<PackageTree> {
  const { dependencies = true, signal, cacheDir = cacheRoot(), architecture = imageArchitecture() } = options
  const set: PackageSet = { suite: SUITE, names: [...new Set(names)].sort(), dependencies }
  const key = keyOf({ set, architecture, recipe })
  const target = join(cacheDir, 'debian', `${set.names.at(-1)}-${key}`)
  await cachedDirectory(target, async scratch => {
    options.progress?.(`Debian packages: ${set.names.join(' ')}`)
    const files = await presentFiles(join(scratch, 'apt'), set, packageIndex, architecture, signal)
    const paths = await downloadAll(files, await debianArchives(), join(scratch, 'archives'), signal)
    await unpack(scratch, files, paths, signal)
  })
  return readTree(target)
}

async function presentFiles(
  directory: string,
  set: PackageSet,
  index: PackageSource['index'],
  architecture: Architecture,
  signal?: AbortSignal,
): Promise<readonly PackageFile[]> {
  return (await index(directory, set.suite, architecture, signal)).files(set)
}

async function readTree(directory: string): Promise<PackageTree> {
  const packages = JSON.parse(await readFile(join(directory, 'packages.json'), 'utf8')) as string[]
  return { root: join(directory, 'root'), packages }
}

/** Leaves the tree and its list of packages in a scratch directory and removes the downloads. */
async function unpack(
  scratch: string,
  files: readonly PackageFile[],
  paths: readonly string[],
  signal?: AbortSignal,
): Promise<void> {
  const root = join(scratch, 'root')
  for (const name of ['bin', 'sbin', 'lib', 'lib64']) {
    await mkdir(join(root, 'usr', name), { recursive: true })
    await symlink(`usr/${name}`, join(root, name))
  }
  for (const path of paths) {
    await run('dpkg-deb', ['--extract', path, root], signal === undefined ? {} : { signal })
  }
  for (const name of ['apt', 'archives']) await rm(join(scratch, name), { recursive: true, force: true })
  await writeFile(join(scratch, 'packages.json'), JSON.stringify(files.map(fullName)))
}
