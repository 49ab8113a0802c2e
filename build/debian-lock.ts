import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { download, fullName, type PackageFile } from './apt.ts'
import type { SetName } from './package-sets.ts'
import type { DebianArchives } from './sources.ts'

/** The files that the images are built from, with their digests. */
export interface DebianLock {
  /** Day on which these were the newest files in the archives. */
  readonly date: string
  /** By set, then by architecture; sorted by package. */
  readonly sets: Readonly<Record<SetName, Readonly<Record<string, readonly PackageFile[]>>>>
}

export const lockPath = fileURLToPath(new URL('debian.lock.json', import.meta.url))

export async function readLock(path = lockPath): Promise<DebianLock> {
  return JSON.parse(await readFile(path, 'utf8')) as DebianLock
}

/** @throws for an architecture that is not in the lock */
export function filesOf(lock: DebianLock, name: SetName, architecture: string): readonly PackageFile[] {
  const files = lock.sets[name]?.[architecture]
  if (files === undefined)
    throw new Error(`${lockPath} has no ${name} for ${architecture}: renew it with \`npm run lock-packages\``)
  return files
}

/** Returns the text of the lock, with one line for each file, so that a diff is readable. */
export function lockText({ date, sets }: DebianLock): string {
  const list = (files: readonly PackageFile[]) =>
    `[\n${files.map(file => `        ${JSON.stringify(file)}`).join(',\n')}\n      ]`
  const record = (entries: readonly (readonly [string, string])[], indent: string) =>
    `{\n${entries.map(([name, text]) => `${indent}  ${JSON.stringify(name)}: ${text}`).join(',\n')}\n${indent}}`
  const bySet = Object.entries(sets).map(([name, architectures]) => {
    const lists = Object.entries(architectures).map(
      ([architecture, files]) => [architecture, list(files)] as const,
    )
    return [name, record(lists, '    ')] as const
  })
  return `${record(
    [
      ['date', JSON.stringify(date)],
      ['sets', record(bySet, '  ')],
    ],
    '',
  )}\n`
}

/**
 * Lists how one list differs from another: `PACKAGE VERSION -> VERSION`, with `none` for a package that one list lacks.
 */
export function differences(from: readonly PackageFile[], to: readonly PackageFile[]): string[] {
  const old = new Map(from.map(file => [file.package, file]))
  const now = new Map(to.map(file => [file.package, file]))
  return [...new Set([...old.keys(), ...now.keys()])].sort().flatMap(name => {
    const [a, b] = [old.get(name), now.get(name)]
    if (a?.sha256 === b?.sha256) return []
    return [`${name} ${a?.version ?? 'none'} -> ${b?.version ?? 'none'}`]
  })
}

/** Thrown when the archive has dropped locked files. */
export class LockedFilesGone extends Error {
  /** The files that the archive now has for the whole set. */
  readonly present: readonly PackageFile[]
  /** The result of `differences`. */
  readonly changes: readonly string[]

  constructor(missing: readonly PackageFile[], changes: readonly string[], present: readonly PackageFile[]) {
    super(
      `the Debian archive no longer has ${missing.map(fullName).join(', ')} of build/debian.lock.json; ` +
        `changes since the lock: ${changes.join(', ')}. Renew the lock with \`npm run lock-packages\``,
    )
    this.present = present
    this.changes = changes
  }
}

/**
 * Downloads locked files.
 *
 * @param present returns the files that the signed lists now name for the same set; called only if a download failed
 * @throws LockedFilesGone; for a wrong digest; for a file that the archive still has but did not deliver
 */
export async function downloadLocked(
  locked: readonly PackageFile[],
  archives: DebianArchives,
  directory: string,
  present: () => Promise<readonly PackageFile[]>,
  signal?: AbortSignal,
): Promise<readonly string[]> {
  const { paths, missing, reason } = await download(locked, archives, directory, signal)
  if (missing.length === 0) return paths
  const now = await present()
  const stillThere = (file: PackageFile) => now.some(it => it.path === file.path && it.sha256 === file.sha256)
  if (missing.some(stillThere)) throw notDownloaded(missing, reason)
  throw new LockedFilesGone(missing, differences(locked, now), now)
}

/** @throws if a file could not be downloaded */
export async function downloadAll(
  files: readonly PackageFile[],
  archives: DebianArchives,
  directory: string,
  signal?: AbortSignal,
): Promise<readonly string[]> {
  const { paths, missing, reason } = await download(files, archives, directory, signal)
  if (missing.length > 0) throw notDownloaded(missing, reason)
  return paths
}

function notDownloaded(missing: readonly PackageFile[], reason: unknown): Error {
  const why = reason instanceof Error ? `: ${reason.message}` : ''
  return new Error(`cannot download Debian packages: ${missing.map(fullName).join(', ')}${why}`, {
    cause: reason,
  })
}
