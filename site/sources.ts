/** Sources of the site: documents of the project, and the kinds of its API. */
import { globSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { MenuGroup } from './layout.ts'
import { addressOf } from './links.ts'
import { listedSources, type NavigationGroup, navigation, pagesOf } from './navigation.ts'
import { addressOfKind, type KindVersion, kindsIn } from './reference/kinds.ts'

export const project = dirname(import.meta.dirname)

export interface Document {
  /** Path from the project's directory. */
  readonly source: string
  readonly address: string
  readonly title: string
  readonly text: string
}

/** Returns the paths of all Markdown files that may be pages. */
export const markdownFiles = (): readonly string[] =>
  globSync(['*.md', 'docs/**/*.md', '{bench,drill,src/kube}/README.md'], { cwd: project }).toSorted()

/** Reads the documents of the navigation. @throws Error if the navigation and the files differ */
export async function readDocuments(
  groups: readonly NavigationGroup[] = navigation,
): Promise<readonly Document[]> {
  return Promise.all(
    listedSources(groups, markdownFiles()).map(async source => {
      const text = await readFile(join(project, source), 'utf8')
      const title = /^# (.*)$/m.exec(text)?.[1]
      if (title === undefined)
        throw new Error(`${source} has no title: begin it with a line such as "# Title"`)
      return { source, address: addressOf(source), title: title.replaceAll('`', ''), text }
    }),
  )
}

/** Reads the kinds of `crds/`, sorted by name. */
export async function readKinds(): Promise<readonly KindVersion[]> {
  const files = globSync('crds/**/*.yaml', { cwd: project }).toSorted()
  const kinds = (await Promise.all(files.map(source => kindsIn(project, source)))).flat()
  return kinds.toSorted((a, b) => a.kind.localeCompare(b.kind) || a.group.localeCompare(b.group))
}

/** Returns the name of a kind in the menu: with its group where two groups have the kind. */
export const titleOfKind = (kind: KindVersion, kinds: readonly KindVersion[]): string =>
  kinds.some(other => other.kind === kind.kind && other.group !== kind.group)
    ? `${kind.kind} ${kind.version} (${kind.group})`
    : `${kind.kind} ${kind.version}`

export function menuOf(documents: readonly Document[], kinds: readonly KindVersion[]): readonly MenuGroup[] {
  const bySource = new Map(documents.map(document => [document.source, document]))
  const found = (sources: readonly string[]) =>
    sources.flatMap(source => {
      const document = bySource.get(source)
      return document === undefined ? [] : [{ address: document.address, title: document.title }]
    })
  const reference = kinds.map(kind => ({ address: addressOfKind(kind), title: titleOfKind(kind, kinds) }))
  return navigation.map(group => {
    const { title, pages, folder } = group
    const inFolder = pagesOf(group, [...bySource.keys()]).slice(pages.length)
    return {
      title,
      pages: [...found(pages), ...(group.reference === true ? reference : [])],
      ...(folder !== undefined && { folder: { title: folder.title, pages: found(inFolder) } }),
    }
  })
}
