import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { exists } from './cache.ts'

/** A Debian archive as this machine reaches it. */
export interface DebianArchive {
  readonly uri: string
  readonly signedBy: string
}

export interface DebianArchives {
  readonly main: DebianArchive
  readonly security?: DebianArchive
}

/** A file of the package debian-archive-keyring, which Debian always has. */
export const debianKeyring = '/usr/share/keyrings/debian-archive-keyring.gpg'

/** Names a Debian archive, for machines of other distributions that have Debian's keys. */
const variable = 'UNDERSTUDY_DEBIAN_ARCHIVE'

export const namedArchive = (): string | undefined => process.env[variable]

/**
 * Returns the Debian archives that this machine's own apt uses, so that a mirror or proxy of the site is used here too. A machine of another
 * distribution that has Debian's keys, such as Ubuntu with the package debian-archive-keyring, uses the archive that is named.
 * @param named address of a Debian archive; that of the security updates beside it has the suffix `-security`
 * @throws if the machine has neither
 */
export async function debianArchives(
  etc = '/etc',
  keyring = debianKeyring,
  named = namedArchive(),
): Promise<DebianArchives> {
  // Other systems have no such file, or another ID in it: the archives of a derived distribution are not Debian's.
  const release = await readFile(join(etc, 'os-release'), 'utf8').catch(ignoreMissing(''))
  const isDebian = /^ID="?debian"?$/m.test(release)
  if (release !== '' && !isDebian) {
    const name = /^NAME="?([^"\n]+)"?$/m.exec(release)?.[1] ?? 'this system'
    if (!(await exists(keyring)))
      throw new Error(
        `images consist of Debian packages, and ${name} does not have Debian's keys to check them: ` +
          'sudo apt-get install debian-archive-keyring',
      )
    if (named === undefined)
      throw new Error(
        `images consist of Debian packages, and the archives of ${name} are not Debian's: ` +
          `set ${variable} to the address of a Debian archive, for instance of a mirror near you`,
      )
    const [uri, signedBy] = [named.replace(/\/+$/, ''), keyring]
    return { main: { uri, signedBy }, security: { uri: `${uri}-security`, signedBy } }
  }
  const codename = isDebian ? /^VERSION_CODENAME="?([a-z]+)"?$/m.exec(release)?.[1] : undefined
  const archives = (await sourceFiles(join(etc, 'apt'))).flatMap(({ path, text }) =>
    path.endsWith('.sources') ? parseDeb822(text) : parseOneLine(text),
  )
  const find = (suite: string): DebianArchive | undefined => {
    const source = archives.find(it => it.suites.includes(suite) && it.components.includes('main'))
    return source && { uri: source.uri, signedBy: source.signedBy ?? debianKeyring }
  }
  const main = codename === undefined ? undefined : find(codename)
  if (main === undefined) {
    throw new Error(
      `no Debian archive in ${etc}/apt: images consist of Debian packages, so name one there, or build them with ` +
        `docker: docs/try-on-kind.md`,
    )
  }
  const security = find(`${codename}-security`)
  return { main, ...(security && { security }) }
}

interface Source {
  readonly uri: string
  readonly suites: readonly string[]
  readonly components: readonly string[]
  readonly signedBy?: string
}

async function sourceFiles(apt: string): Promise<{ path: string; text: string }[]> {
  const parts = join(apt, 'sources.list.d')
  const names = await readdir(parts).catch(ignoreMissing<string[]>([]))
  const paths = [
    join(apt, 'sources.list'),
    ...names
      .filter(name => /\.(list|sources)$/.test(name))
      .sort()
      .map(name => join(parts, name)),
  ]
  return Promise.all(
    paths.map(async path => ({ path, text: await readFile(path, 'utf8').catch(ignoreMissing('')) })),
  )
}

function ignoreMissing<T>(fallback: T): (error: NodeJS.ErrnoException) => T {
  return error => {
    if (error.code === 'ENOENT') return fallback
    throw error
  }
}

/** Deb822 style: stanzas of `Field: value`, continued by indented lines. */
export function parseDeb822(text: string): Source[] {
  return text
    .split('\n')
    .filter(line => !line.startsWith('#'))
    .join('\n')
    .split(/\n\s*\n/)
    .flatMap(stanza => {
      const field = (name: string): string[] =>
        (new RegExp(`^${name}:((?:.*)(?:\\n[ \\t].*)*)`, 'im').exec(stanza)?.[1] ?? '')
          .split(/\s+/)
          .filter(word => word !== '')
      if (!field('Types').includes('deb') || field('Enabled')[0] === 'no') return []
      const signedBy = field('Signed-By')[0]
      return field('URIs').map(uri => ({
        uri,
        suites: field('Suites'),
        components: field('Components'),
        ...(signedBy?.startsWith('/') && { signedBy }),
      }))
    })
}

/** One-line style: `deb [options] uri suite component...`. */
export function parseOneLine(text: string): Source[] {
  return text.split('\n').flatMap(line => {
    const match = /^deb\s+(?:\[([^\]]*)\]\s+)?(\S+)\s+(\S+)\s+(.+)$/.exec(line.trim())
    if (match === null) return []
    const [, options = '', uri = '', suite = '', components = ''] = match
    const signedBy = /signed-by=(\/\S+)/.exec(options)?.[1]
    return [{ uri, suites: [suite], components: components.split(/\s+/), ...(signedBy && { signedBy }) }]
  })
}
