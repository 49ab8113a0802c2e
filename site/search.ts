/** The index of the search: made here, loaded by browsers. */
import MiniSearch from 'minisearch'
import { searchOptions } from './browser/search-options.ts'
import { textOfHtml } from './html.ts'

/** A part of a page that a result of the search leads to. */
export interface Section {
  /** Empty: the top of the page. */
  readonly anchor: string
  /** Its heading. Empty: the page itself. */
  readonly title: string
  readonly text: string
}

export interface SearchedPage {
  readonly address: string
  readonly title: string
  readonly sections: readonly Section[]
}

/** Returns the sections of the content of a page: each begins at a heading that has an anchor. */
export function sectionsOf(html: string): readonly Section[] {
  const headings = [...html.matchAll(/<h[1-6] id="([^"]*)"[^>]*>(.*?)<\/h[1-6]>/gs)]
  const ends = [...headings.slice(1).map(({ index }) => index), html.length]
  return headings.map(({ 0: whole, 1: anchor = '', 2: heading = '', index }, number) => ({
    anchor: whole.startsWith('<h1') ? '' : anchor,
    title: whole.startsWith('<h1') ? '' : textOfHtml(withoutAnchor(heading)),
    text: textOfHtml(html.slice(index + whole.length, ends[number])),
  }))
}

/** Removes the link of a heading to itself. */
export const withoutAnchor = (heading: string): string => heading.replace(/<a class="anchor".*?<\/a>/gs, '')

/** Returns the index as JSON, which `MiniSearch.loadJSON` of the same version reads. */
export function searchIndex(pages: readonly SearchedPage[]): string {
  const index = new MiniSearch(searchOptions)
  for (const { address, title, sections } of pages)
    index.addAll(
      sections.map(section => ({
        id: section.anchor === '' ? address : `${address}#${section.anchor}`,
        page: title,
        title: section.title === '' ? title : section.title,
        text: section.text,
      })),
    )
  return JSON.stringify(index)
}
