import { mkdir, readdir, rename, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { imageArchitecture } from './archive.ts'
import { cachedDirectory, cacheRoot, keyOf } from './cache.ts'
import { run } from './run.ts'
import { type DebianArchives, debianArchives } from './sources.ts'

/** Debian release that everything in the images comes from. */
export const SUITE = 'trixie'

export interface PackageTree {
  /** Directory with the unpacked files (merged /usr), owned by whoever built it. */
  readonly root: string
  /** `name_version_arch` of every package in it, sorted. */
  readonly packages: readonly string[]
}

export interface DebianOptions {
  readonly cacheDir?: string
  readonly signal?: AbortSignal
  readonly progress?: (message: string) => void
}

/**
 * The files of the given Debian packages and of all they depend on, unpacked. apt verifies signatures and hashes;
 * it works in a directory of its own, so the machine's packages are neither looked at nor changed, and no root is
 * needed. Maintainer scripts do not run.
 *
 * Cached by package names, so a warm build needs no network; `UNDERSTUDY_CACHE/debian` can be deleted to get newer
 * versions.
 */
export async function debianPackages(
  names: readonly string[],
  options: DebianOptions = {},
): Promise<PackageTree> {
  const wanted = [...new Set(names)].sort()
  const key = keyOf({ suite: SUITE, wanted, architecture: imageArchitecture(), recipe: 1 })
  const target = join(options.cacheDir ?? cacheRoot(), 'debian', `${wanted[0]}-${key}`)
  await cachedDirectory(target, async scratch => {
    options.progress?.(`Debian packages: ${wanted.join(' ')}`)
    await fetchPackages(scratch, wanted, options.signal)
    await unpackPackages(scratch, options.signal)
  })
  const archives = (await readdir(join(target, 'archives'))).filter(name => name.endsWith('.deb')).sort()
  return { root: join(target, 'root'), packages: archives.map(name => name.replace(/\.deb$/, '')) }
}

async function fetchPackages(scratch: string, names: readonly string[], signal?: AbortSignal): Promise<void> {
  const directories = ['etc', 'state/lists/partial', 'cache', 'archives/partial', 'log']
  for (const directory of directories) await mkdir(join(scratch, directory), { recursive: true })
  await writeFile(join(scratch, 'etc/sources.list'), sourcesList(await debianArchives()))
  await writeFile(join(scratch, 'state/status'), '')
  const setting = (name: string, value: string): string[] => ['-o', `${name}=${value}`]
  const apt = [
    '--quiet',
    '--yes',
    ...setting('Dir::Etc::SourceList', join(scratch, 'etc/sources.list')),
    ...setting('Dir::Etc::SourceParts', '/dev/null'),
    ...setting('Dir::Etc::Preferences', '/dev/null'),
    ...setting('Dir::Etc::PreferencesParts', '/dev/null'),
    ...setting('Dir::State', join(scratch, 'state')),
    ...setting('Dir::State::Status', join(scratch, 'state/status')),
    ...setting('Dir::Cache', join(scratch, 'cache')),
    ...setting('Dir::Cache::Archives', join(scratch, 'archives')),
    ...setting('Dir::Log', join(scratch, 'log')),
    ...setting('APT::Architecture', imageArchitecture()),
    ...setting('APT::Architectures', imageArchitecture()),
    ...setting('Acquire::Languages', 'none'),
    ...setting('Acquire::Retries', '3'),
    // The download directory belongs to the caller; apt's own user could not write there.
    ...setting('APT::Sandbox::User', 'root'),
    // The machine's hooks (container base images have some) would delete what we download.
    ...setting('#clear', 'APT::Update::Post-Invoke'),
  ]
  const options = signal === undefined ? {} : { signal }
  await run('apt-get', [...apt, 'update'], options)
  await run('apt-get', [...apt, '--no-install-recommends', '--download-only', 'install', ...names], options)
}

async function unpackPackages(scratch: string, signal?: AbortSignal): Promise<void> {
  const root = join(scratch, 'root')
  for (const name of ['bin', 'sbin', 'lib', 'lib64']) {
    await mkdir(join(root, 'usr', name), { recursive: true })
    await symlink(`usr/${name}`, join(root, name))
  }
  const archives = join(scratch, 'archives')
  for (const name of (await readdir(archives)).sort()) {
    if (!name.endsWith('.deb')) continue
    await run('dpkg-deb', ['--extract', join(archives, name), root], signal === undefined ? {} : { signal })
    // apt writes an epoch's colon as %3a.
    const readable = decodeURIComponent(name)
    if (readable !== name) await rename(join(archives, name), join(archives, readable))
  }
}

function sourcesList({ main, security }: DebianArchives): string {
  const line = (uri: string, suite: string, signedBy: string): string =>
    `deb [signed-by=${signedBy}] ${uri} ${suite} main\n`
  return (
    line(main.uri, SUITE, main.signedBy) +
    line(main.uri, `${SUITE}-updates`, main.signedBy) +
    (security ? line(security.uri, `${SUITE}-security`, security.signedBy) : '')
  )
}
