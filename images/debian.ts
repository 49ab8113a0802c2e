import { mkdir, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { imageArchitecture } from './archive.ts'
import { cachedDirectory, cacheRoot, keyOf } from './cache.ts'
import { run } from './run.ts'
import { type DebianArchives, debianArchives } from './sources.ts'

/** Debian release that everything in the images comes from, unless a recipe says why it wants another. */
export const SUITE = 'trixie'

/** `forky` is Debian's testing release: no security archive, and its packages change. */
export type Suite = 'trixie' | 'forky'

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
 * The files of the given Debian packages and of all they depend on (or of them alone), unpacked. apt verifies
 * signatures and hashes; it works in a directory of its own, so the machine's packages are neither looked at nor
 * changed, and no root is needed. Maintainer scripts do not run.
 *
 * Cached by package names, so a warm build needs no network; delete `debian/` in the cache to get newer versions.
 */
export async function debianPackages(
  names: readonly string[],
  options: DebianOptions & { readonly dependencies?: boolean; readonly suite?: Suite } = {},
): Promise<PackageTree> {
  const { dependencies = true, suite = SUITE, signal, progress, cacheDir = cacheRoot() } = options
  const wanted = [...new Set(names)].sort()
  const key = keyOf({ suite, wanted, dependencies, architecture: imageArchitecture(), recipe: 2 })
  const target = join(cacheDir, 'debian', `${wanted.at(-1)}-${key}`)
  await cachedDirectory(target, async scratch => {
    progress?.(`Debian packages: ${wanted.join(' ')}`)
    const work = join(scratch, 'apt')
    await fetchPackages({ scratch: work, names: wanted, dependencies, suite, ...(signal && { signal }) })
    const packages = await unpackPackages(join(work, 'archives'), join(scratch, 'root'), signal)
    await rm(work, { recursive: true })
    await writeFile(join(scratch, 'packages.json'), JSON.stringify(packages))
  })
  const packages = JSON.parse(await readFile(join(target, 'packages.json'), 'utf8')) as string[]
  return { root: join(target, 'root'), packages }
}

/** apt's other configuration stays as it is: the machine may reach its mirror through a proxy that is set there. */
async function fetchPackages({
  scratch,
  names,
  dependencies,
  suite,
  signal,
}: {
  readonly scratch: string
  readonly names: readonly string[]
  readonly dependencies: boolean
  readonly suite: Suite
  readonly signal?: AbortSignal
}): Promise<void> {
  const directories = ['etc', 'state/lists/partial', 'cache', 'archives/partial', 'log']
  for (const directory of directories) await mkdir(join(scratch, directory), { recursive: true })
  await writeFile(join(scratch, 'etc/sources.list'), sourcesList(await debianArchives(), suite))
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
    // A signed list that is over is refused, also where the machine's own apt is less strict: it could be played again, with
    // holes in its packages that are long closed.
    ...setting('Acquire::Check-Valid-Until', 'true'),
  ]
  const options = signal === undefined ? {} : { signal }
  await run('apt-get', [...apt, 'update'], options)
  if (dependencies) {
    await run('apt-get', [...apt, '--no-install-recommends', '--download-only', 'install', ...names], options)
  } else {
    await run('apt-get', [...apt, 'download', ...names], { ...options, cwd: join(scratch, 'archives') })
  }
}

async function unpackPackages(archives: string, root: string, signal?: AbortSignal): Promise<string[]> {
  for (const name of ['bin', 'sbin', 'lib', 'lib64']) {
    await mkdir(join(root, 'usr', name), { recursive: true })
    await symlink(`usr/${name}`, join(root, name))
  }
  const files = (await readdir(archives)).filter(name => name.endsWith('.deb')).sort()
  for (const file of files) {
    await run('dpkg-deb', ['--extract', join(archives, file), root], signal === undefined ? {} : { signal })
  }
  // apt writes an epoch's colon as %3a.
  return files.map(file => decodeURIComponent(file).replace(/\.deb$/, ''))
}

function sourcesList({ main, security }: DebianArchives, suite: Suite): string {
  const line = (uri: string, name: string, signedBy: string): string =>
    `deb [signed-by=${signedBy}] ${uri} ${name} main\n`
  if (suite === 'forky') return line(main.uri, suite, main.signedBy)
  return (
    line(main.uri, suite, main.signedBy) +
    line(main.uri, `${suite}-updates`, main.signedBy) +
    (security ? line(security.uri, `${suite}-security`, security.signedBy) : '')
  )
}
