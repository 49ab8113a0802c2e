/** Examines the pages of a built site, whatever wrote them. */
import { posix } from 'node:path'

/** Anchors of a page, and its links to other pages. */
export interface PageLinks {
  readonly anchors: ReadonlySet<string>
  readonly links: readonly string[]
}

export const linksIn = (html: string): PageLinks => {
  const tags = [...html.matchAll(/<[a-z][^>]*>/g)].map(([tag]) => tag)
  const values = (name: string) =>
    tags.flatMap(tag =>
      [...tag.matchAll(new RegExp(`\\s${name}="([^"]*)"`, 'g'))].map(([, value = '']) => value),
    )
  return {
    anchors: new Set(values('id')),
    links: [...values('href'), ...values('src')].map(value =>
      value.replaceAll('&amp;', '&').replaceAll('&#39;', "'"),
    ),
  }
}

/**
 * Returns a line for each link that leads to no file or anchor, and for each file that the page would load from another
 * site.
 *
 * @param pages of one version, by address
 * @param files addresses of all files of the version
 */
export function deadLinks(
  pages: ReadonlyMap<string, PageLinks>,
  files: ReadonlySet<string>,
): readonly string[] {
  return [...pages].flatMap(([address, { links }]) =>
    links.flatMap(link => {
      if (/^[a-z][a-z+.-]*:/i.test(link)) return []
      const [file = '', anchor] = link.split('#').map(decodeURIComponent)
      const target = file === '' ? address : posix.join(posix.dirname(address), file)
      if (!files.has(target)) return [`${address}: ${link} leads to no file`]
      if (anchor === undefined || anchor === '' || pages.get(target)?.anchors.has(anchor)) return []
      return [`${address}: ${link} leads to no heading`]
    }),
  )
}
