/** Builds one version of the site. */
import { existsSync, readdirSync } from 'node:fs'
import { copyFile, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { Eleventy } from '@11ty/eleventy'
import { writeAssets } from './assets.ts'
import { deadLinks, linksIn } from './dead-links.ts'
import { pageOf } from './layout.ts'
import { type LinkTargets, repositoryAddress } from './links.ts'
import { type Findings, type MarkdownState, siteRule } from './markdown.ts'
import { addressOfKind, type KindVersion } from './reference/kinds.ts'
import { kindPage, kindSections } from './reference/page.ts'
import { type SearchedPage, searchIndex, sectionsOf } from './search.ts'
import { type Document, menuOf, project, readDocuments, readKinds } from './sources.ts'
import { unreleased } from './versions.ts'

export interface BuildOptions {
  readonly version: string
  readonly progress?: (text: string) => void
  readonly signal?: AbortSignal
}

interface Built {
  readonly address: string
  readonly title: string
  /** Without the frame. */
  readonly content: string
  /** With it. */
  readonly page: string
}

/**
 * Writes all pages of one version into a directory.
 *
 * @returns addresses of the pages
 * @throws Error that lists what is wrong: pages that are missing in the navigation, dead links
 */
export async function buildVersion(directory: string, options: BuildOptions): Promise<readonly string[]> {
  const { version, progress = () => {}, signal } = options
  const [documents, kinds] = await Promise.all([readDocuments(), readKinds()])
  const findings: Findings = { problems: [], assets: new Set() }
  signal?.throwIfAborted()
  const pages = await writePages(directory, version, { documents, kinds }, findings)
  progress(`${documents.length} documents, ${kinds.length} kinds of the API`)
  signal?.throwIfAborted()
  await writeAssets(directory)
  for (const asset of findings.assets) {
    await mkdir(dirname(join(directory, asset)), { recursive: true })
    await copyFile(join(project, asset), join(directory, asset))
  }
  const index = searchIndex(searched(pages, kinds))
  await writeFile(join(directory, 'site/search.json'), index)
  progress(`search: ${Math.round(index.length / 1000)} kB`)
  const problems = [...findings.problems, ...deadIn(directory, pages)]
  if (problems.length > 0) throw new Error(`${problems.length} dead links:\n${problems.join('\n')}`)
  progress('all links lead somewhere')
  return pages.map(({ address }) => address)
}

interface Sources {
  readonly documents: readonly Document[]
  readonly kinds: readonly KindVersion[]
}

async function writePages(
  directory: string,
  version: string,
  { documents, kinds }: Sources,
  findings: Findings,
): Promise<readonly Built[]> {
  const menu = menuOf(documents, kinds)
  const inMenu = menu.flatMap(({ pages, folder }) => [...pages, ...(folder?.pages ?? [])])
  const titles = new Map(inMenu.map(({ address, title }) => [address, title]))
  const rule = siteRule(await targetsOf(documents, version), findings)
  const contents = await rendered({ documents, kinds }, rule)
  const built = contents.map(([address, content]) => {
    const title = titles.get(address) ?? ''
    return { address, title, content, page: pageOf(address, title, content, { version, menu }) }
  })
  for (const { address, page } of built) {
    await mkdir(dirname(join(directory, address)), { recursive: true })
    await writeFile(join(directory, address), page)
  }
  return built
}

/** Returns the content of each page by its address, sorted. */
async function rendered(
  { documents, kinds }: Sources,
  rule: (state: MarkdownState) => void,
): Promise<readonly (readonly [string, string])[]> {
  // Every page is given to Eleventy as text: its own search for files would take each Markdown file of the project.
  const input = await mkdtemp(join(tmpdir(), 'understudy-site-'))
  try {
    const eleventy = new Eleventy(input, join(input, 'out'), {
      quietMode: true,
      configPath: false,
      config: config => {
        config.amendLibrary('md', library => library.core.ruler.push('site', rule))
        // No language of templates: double braces are the documents' own.
        for (const { source, address, text } of documents)
          config.addTemplate(address.replace(/html$/, 'md'), text, {
            ...{ source, permalink: address, templateEngineOverride: 'md' },
          })
        for (const kind of kinds)
          config.addTemplate(addressOfKind(kind), kindPage(kind), {
            ...{ permalink: addressOfKind(kind), templateEngineOverride: 'html' },
          })
        return { templateFormats: ['md', 'html'] }
      },
    })
    eleventy.disableLogger()
    const pages = await eleventy.toJSON()
    return pages
      .map(
        ({ url, content }) => [url.replace(/^\//, '').replace(/(^|\/)$/, '$1index.html'), content] as const,
      )
      .toSorted(([a], [b]) => (a < b ? -1 : 1))
  } finally {
    await rm(input, { recursive: true, force: true })
  }
}

async function targetsOf(documents: readonly Document[], version: string): Promise<LinkTargets> {
  const { repository } = JSON.parse(await readFile(join(project, 'package.json'), 'utf8')) as {
    readonly repository?: string | { readonly url?: string }
  }
  const root = repositoryAddress(repository)
  const reference = version === unreleased ? 'HEAD' : version
  return {
    pages: new Set(documents.map(({ source }) => source)),
    exists: path => existsSync(join(project, path)),
    ...(root !== undefined && { inRepository: path => `${root}/blob/${reference}/${path}` }),
  }
}

function searched(pages: readonly Built[], kinds: readonly KindVersion[]): readonly SearchedPage[] {
  const byAddress = new Map(kinds.map(kind => [addressOfKind(kind), kind]))
  return pages.map(({ address, title, content }) => {
    const kind = byAddress.get(address)
    return { address, title, sections: kind === undefined ? sectionsOf(content) : kindSections(kind) }
  })
}

function deadIn(directory: string, pages: readonly Built[]): readonly string[] {
  const files = readdirSync(directory, { recursive: true, encoding: 'utf8' })
  return deadLinks(new Map(pages.map(({ address, page }) => [address, linksIn(page)])), new Set(files))
}
