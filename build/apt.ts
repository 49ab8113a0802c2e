/**
 * apt in a directory of its own: it neither reads nor changes the machine's packages, and it needs no root. The
 * machine's other apt configuration still applies, because it may set the proxy through which the mirror is reached.
 */
import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { exists } from './cache.ts'
import type { PackageSet, Suite } from './package-sets.ts'
import { run } from './run.ts'
import { type DebianArchives, debianArchives } from './sources.ts'

/** A package's file in an archive. */
export interface PackageFile {
  readonly package: string
  readonly version: string
  readonly archive: keyof DebianArchives
  /** Path below the archive; this machine's configuration chooses the mirror. */
  readonly path: string
  readonly sha256: string
}

/** The packages that a release's signed lists name at present. */
export interface PackageIndex {
  /** Returns the files of a set, sorted by package. Downloads nothing. */
  readonly files: (set: Pick<PackageSet, 'names' | 'dependencies'>) => Promise<PackageFile[]>
}

// The download directory belongs to the caller, so apt's own user could not write there.
const asCaller = ['-o', 'APT::Sandbox::User=root', '-o', 'Acquire::Retries=3']

/**
 * Reads the lists of a release for an architecture. apt verifies their signatures.
 *
 * @param directory directory for the lists, created by this function
 */
export async function packageIndex(
  directory: string,
  suite: Suite,
  architecture: string,
  signal?: AbortSignal,
): Promise<PackageIndex> {
  for (const part of ['etc', 'state/lists/partial', 'cache', 'archives/partial', 'log'])
    await mkdir(join(directory, part), { recursive: true })
  const archives = await debianArchives()
  await writeFile(join(directory, 'etc/sources.list'), sourcesList(archives, suite))
  await writeFile(join(directory, 'state/status'), '')
  const setting = (name: string, value: string): string[] => ['-o', `${name}=${value}`]
  const apt = [
    '--quiet',
    '--yes',
    ...asCaller,
    ...setting('Dir::Etc::SourceList', join(directory, 'etc/sources.list')),
    ...setting('Dir::Etc::SourceParts', '/dev/null'),
    ...setting('Dir::Etc::Preferences', '/dev/null'),
    ...setting('Dir::Etc::PreferencesParts', '/dev/null'),
    ...setting('Dir::State', join(directory, 'state')),
    ...setting('Dir::State::Status', join(directory, 'state/status')),
    ...setting('Dir::Cache', join(directory, 'cache')),
    ...setting('Dir::Cache::Archives', join(directory, 'archives')),
    ...setting('Dir::Log', join(directory, 'log')),
    ...setting('APT::Architecture', architecture),
    ...setting('APT::Architectures', architecture),
    ...setting('Acquire::Languages', 'none'),
    // Refuse expired lists even if the machine's apt is configured to accept them: an attacker could replay an old list
    // whose packages have holes that were closed long ago.
    ...setting('Acquire::Check-Valid-Until', 'true'),
  ]
  const options = signal === undefined ? {} : { signal }
  await run('apt-get', [...apt, 'update'], options)
  return {
    async files({ names, dependencies }) {
      const words = dependencies ? ['--no-install-recommends', 'install'] : ['download']
      const text = await run(
        'apt-get',
        [...apt, '-o', 'Acquire::ForceHash=SHA256', '--print-uris', ...words, ...names],
        options,
      )
      return parseUris(text, archives)
    },
  }
}

/**
 * Parses the lines of `apt-get --print-uris`: `'URI' FILE SIZE SHA256:DIGEST`. The file's name is
 * `PACKAGE_VERSION_ARCHITECTURE.deb`, with the colon of a version's epoch as %3a.
 *
 * @throws for a file without such a digest or outside the archives
 */
export function parseUris(text: string, archives: DebianArchives): PackageFile[] {
  const lines = text.split('\n').filter(line => line.startsWith("'"))
  const files = lines.map((line): PackageFile => {
    const [, uri = '', name = '', version = '', sha256] =
      /^'([^']+)' ([^ _]+)_([^ _]+)_[^ _]+\.deb \d+ SHA256:([0-9a-f]{64})$/.exec(line.trimEnd()) ?? []
    const archive = (['main', 'security'] as const).find(it =>
      uri.startsWith(`${baseOf(archives, it)}/pool/`),
    )
    if (sha256 === undefined || archive === undefined)
      throw new Error(`apt-get names an unexpected file: ${line}`)
    const path = uri.slice(`${baseOf(archives, archive)}/`.length)
    return {
      package: name,
      version: decodeURIComponent(version),
      archive,
      path: decodeURIComponent(path),
      sha256,
    }
  })
  return files.sort((a, b) => (a.package < b.package ? -1 : 1))
}

/** Returns `name_version_arch`. */
export function fullName({ package: name, version, path }: PackageFile): string {
  return `${name}_${version}_${/_([a-z0-9]+)\.deb$/.exec(path)?.[1]}`
}

export interface Download {
  /** Paths of the downloaded files on this machine, in the order requested. */
  readonly paths: readonly string[]
  readonly missing: readonly PackageFile[]
  /** Why files are missing. */
  readonly reason?: unknown
}

/**
 * Downloads files into a directory with apt's own downloader.
 *
 * @throws if a file's digest differs: the file was tampered with, so no other source is tried for it
 */
export async function download(
  files: readonly PackageFile[],
  archives: DebianArchives,
  directory: string,
  signal?: AbortSignal,
): Promise<Download> {
  await mkdir(directory, { recursive: true })
  const wanted = files.map((file, index) => {
    const base = baseOf(archives, file.archive)
    // The number keeps the order of the list when the directory is read.
    const path = join(directory, `${String(index).padStart(4, '0')}.deb`)
    return { file, path, words: base === undefined ? [] : [`${base}/${quoted(file.path)}`, path] }
  })
  const words = wanted.flatMap(it => it.words)
  const options = signal === undefined ? {} : { signal }
  const reason: unknown =
    words.length === 0
      ? undefined
      : await run('/usr/lib/apt/apt-helper', [...asCaller, 'download-file', ...words], options).then(
          () => undefined,
          (error: unknown) => error,
        )
  signal?.throwIfAborted()
  const paths: string[] = []
  const missing: PackageFile[] = []
  for (const { file, path } of wanted) {
    if (!(await exists(path))) missing.push(file)
    else if ((await sha256Of(path)) === file.sha256) paths.push(path)
    else throw new Error(`${file.path} does not have SHA-256 ${file.sha256}: refused`)
  }
  return { paths, missing, ...(reason !== undefined && { reason }) }
}

async function sha256Of(path: string): Promise<string> {
  const hash = createHash('sha256')
  await pipeline(createReadStream(path), hash)
  return hash.digest('hex')
}

/** apt itself encodes a plus sign like this: some mirrors take a bare one for a space. */
const quoted = (path: string): string => path.replaceAll(/[^\w/.~-]/g, encodeURIComponent)

const baseOf = (archives: DebianArchives, archive: keyof DebianArchives): string | undefined =>
  archives[archive]?.uri.replace(/\/+$/, '')

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
