/** The frame of each page. */
import { escapeHtml, textOfHtml } from './html.ts'
import { relativeAddress } from './links.ts'
import { withoutAnchor } from './search.ts'

export interface MenuGroup {
  readonly title: string
  readonly pages: readonly MenuPage[]
  /** Pages below a line that opens. */
  readonly folder?: { readonly title: string; readonly pages: readonly MenuPage[] }
}

export interface MenuPage {
  readonly address: string
  readonly title: string
}

export interface Frame {
  readonly version: string
  readonly menu: readonly MenuGroup[]
}

/**
 * The page may load files of its own site, and nothing else. It has no inline script or style, so that a server may send
 * the same policy as a header.
 */
const policy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self'",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "require-trusted-types-for 'script'",
].join('; ')

/** Returns the whole page. Every address in it is relative, so that the site works in any folder of any server. */
export function pageOf(address: string, title: string, content: string, { version, menu }: Frame): string {
  const to = (target: string) => escapeHtml(relativeAddress(address, target))
  const name = 'Understudy'
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<meta name="referrer" content="no-referrer">
<title>${escapeHtml(title === name ? name : `${title} · ${name}`)}</title>
<link rel="icon" href="${to('site/icon.svg')}">
<link rel="stylesheet" href="${to('site/style.css')}">
<script src="${to('site/colours.js')}"></script>
<script src="${to('site/main.js')}" type="module"></script>
</head>
<body data-root="${to('site').replace(/site$/, '')}" data-page="${escapeHtml(address)}" data-version="${version}">
<a class="skip" href="#content">Skip to the content</a>
<header>
<a class="name" href="${to('index.html')}">${name}</a>
<label class="versions">Version <select disabled><option>${version}</option></select></label>
<search hidden>
<input type="search" placeholder="Search ( / )" aria-label="Search" aria-controls="results" autocomplete="off" spellcheck="false">
<div id="results" hidden><p role="status"></p><ol></ol></div>
</search>
<button type="button" class="colours" hidden></button>
</header>
<p class="newer" hidden></p>
<div class="columns">
<nav aria-label="Pages">${menuOf(address, menu)}</nav>
<main id="content" tabindex="-1">
${adapted(content)}
</main>
${outlineOf(content)}
</div>
</body>
</html>
`
}

function menuOf(address: string, menu: readonly MenuGroup[]): string {
  const item = (page: MenuPage) => {
    const current = page.address === address ? ' aria-current="page"' : ''
    return `<li><a href="${escapeHtml(relativeAddress(address, page.address))}"${current}>${escapeHtml(page.title)}</a></li>`
  }
  const list = (pages: readonly MenuPage[]) => `<ul>\n${pages.map(item).join('\n')}\n</ul>`
  const isHere = (pages: readonly MenuPage[]) => pages.some(page => page.address === address)
  const details = (title: string, pages: readonly MenuPage[], inner: string) =>
    `<details${isHere(pages) ? ' open' : ''}><summary>${escapeHtml(title)}</summary>${inner}</details>`
  return menu
    .map(({ title, pages, folder }) => {
      const below = folder === undefined ? '' : details(folder.title, folder.pages, list(folder.pages))
      return details(title, [...pages, ...(folder?.pages ?? [])], `${list(pages)}${below}`)
    })
    .join('\n')
}

/** Whatever scrolls can be reached with the keyboard. */
const adapted = (content: string): string =>
  content
    .replace(
      /<pre>(<code class="language-mermaid">.*?)<\/pre>/gs,
      '<details><summary>Diagram, as text for Mermaid</summary><pre tabindex="0">$1</pre></details>',
    )
    .replaceAll('<pre>', '<pre tabindex="0">')
    .replace(/<table/g, '<div class="scroll" tabindex="0"><table')
    .replaceAll('</table>', '</table></div>')

function outlineOf(content: string): string {
  const items = [...content.matchAll(/<h2 id="([^"]*)"[^>]*>(.*?)<\/h2>/gs)].map(
    ([, anchor = '', heading = '']) =>
      `<li><a href="#${anchor}">${escapeHtml(textOfHtml(withoutAnchor(heading)))}</a></li>`,
  )
  if (items.length < 2) return ''
  return `<nav class="outline" aria-label="On this page"><p>On this page</p><ul>\n${items.join('\n')}\n</ul></nav>`
}
