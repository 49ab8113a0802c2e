/** Where the links of documents lead on the site. */
import { posix } from 'node:path'

/** Returns the address of a Markdown file: its own path, so that relative links stay as they are. */
export const addressOf = (source: string): string =>
  source.replace(/(?:^|(?<=\/))README\.md$/, 'index.html').replace(/\.md$/, '.html')

/** Returns the relative address of one page from another. */
export function relativeAddress(from: string, to: string): string {
  const path = posix.relative(posix.dirname(from), to)
  return path === '' ? posix.basename(to) : path
}

export type Link =
  | { readonly type: 'href'; readonly href: string }
  /** A file that is on no page, and no repository is known that has it. */
  | { readonly type: 'path'; readonly path: string }
  | { readonly type: 'asset'; readonly href: string; readonly path: string }
  | { readonly type: 'dead'; readonly why: string }

export interface LinkTargets {
  /** Sources of all pages. */
  readonly pages: ReadonlySet<string>
  /** @returns whether the project has this file or folder */
  readonly exists: (path: string) => boolean
  /** Address of a file or folder in the repository. Absent: no repository is configured. */
  readonly inRepository?: (path: string) => string
}

const images = /\.(?:png|svg|webp)$/

/** Resolves a link of a source file. */
export function resolveLink(source: string, href: string, targets: LinkTargets): Link {
  if (/^[a-z][a-z+.-]*:/i.test(href)) return { type: 'href', href }
  if (href.startsWith('/') || href.startsWith('?'))
    return { type: 'dead', why: `${href} is not a relative path` }
  const [file = '', anchor] = href.split('#')
  if (file === '') return { type: 'href', href }
  const path = posix.join(posix.dirname(source), decodeURIComponent(file)).replace(/\/$/, '')
  if (path.startsWith('..')) return { type: 'dead', why: `${href} leaves the project` }
  if (targets.pages.has(path)) {
    const to = relativeAddress(addressOf(source), addressOf(path))
    return { type: 'href', href: anchor === undefined ? to : `${to}#${anchor}` }
  }
  if (!targets.exists(path)) return { type: 'dead', why: `${path} does not exist` }
  if (images.test(path)) return { type: 'asset', href: relativeAddress(addressOf(source), path), path }
  return targets.inRepository === undefined
    ? { type: 'path', path }
    : { type: 'href', href: targets.inRepository(path) }
}

/**
 * Returns the address of the repository for browsers.
 *
 * @param repository the field of package.json
 * @throws Error if it has no address for browsers
 */
export function repositoryAddress(
  repository: string | { readonly url?: string } | undefined,
): string | undefined {
  if (repository === undefined) return undefined
  const url = typeof repository === 'string' ? repository : (repository.url ?? '')
  const address = url
    .replace(/^git\+/, '')
    .replace(/\.git$/, '')
    .replace(/\/$/, '')
  if (!/^https:\/\/[^/\s]+\/\S+$/.test(address))
    throw new Error(
      `repository of package.json is ${JSON.stringify(repository)}: use an address that begins with https://`,
    )
  return address
}
