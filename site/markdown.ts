/** Changes of Eleventy's Markdown: anchors, links, and tables without inline styles. */
import { anchorNames } from './anchors.ts'
import { type LinkTargets, resolveLink } from './links.ts'

/** A token of markdown-it, which has no types of its own. */
export interface MarkdownToken {
  readonly type: string
  tag: string
  content: string
  attrs: [string, string][] | null
  children: MarkdownToken[] | null
  attrGet(name: string): string | null
  attrSet(name: string, value: string): void
}

export interface MarkdownState {
  readonly tokens: MarkdownToken[]
  /** Data of the page. */
  readonly env: { readonly source?: unknown }
  readonly Token: new (type: string, tag: string, nesting: -1 | 0 | 1) => MarkdownToken
}

export interface Findings {
  /** Problems of links, a line each. */
  readonly problems: string[]
  /** Paths of images to copy. */
  readonly assets: Set<string>
}

/** Returns the rule that adapts the tokens of a page. It adds what it finds to `findings`. */
export function siteRule(targets: LinkTargets, findings: Findings): (state: MarkdownState) => void {
  return state => {
    const { source } = state.env
    if (typeof source !== 'string') throw new Error('a page of Markdown has no source')
    const nameAnchor = anchorNames()
    for (const [index, token] of state.tokens.entries()) {
      if (token.type === 'heading_open') nameHeading(token, state, index, nameAnchor)
      if (token.type === 'th_open' || token.type === 'td_open') styleAsClass(token)
      if (token.type === 'th_open') dropEmptyHeader(state.tokens.slice(index, index + 3))
      if (token.children !== null)
        token.children = withLinks(token.children, source, targets, findings, state)
    }
  }
}

function nameHeading(
  token: MarkdownToken,
  { tokens, Token }: MarkdownState,
  index: number,
  nameAnchor: (heading: string) => string,
): void {
  const inline = tokens[index + 1]
  const words = (inline?.children ?? [])
    .filter(({ type }) => type === 'text' || type === 'code_inline')
    .map(({ content }) => content)
    .join('')
  const name = nameAnchor(words)
  token.attrSet('id', name)
  if (token.tag === 'h1' || inline?.children == null) return
  const open = new Token('link_open', 'a', 1)
  open.attrs = [
    ['class', 'anchor'],
    ['href', `#${name}`],
    ['aria-label', `Link to ${words}`],
  ]
  const sign = new Token('text', '', 0)
  sign.content = '#'
  inline.children.push(open, sign, new Token('link_close', 'a', -1))
}

/** The page's policy of content allows no inline styles. */
function styleAsClass(token: MarkdownToken): void {
  const align = /^text-align:(\w+)$/.exec(token.attrGet('style') ?? '')?.[1]
  if (align !== undefined) token.attrs = [['class', align]]
}

/** A screen reader would announce a header without words: the corner of a table is a plain cell. */
function dropEmptyHeader([open, inline, close]: readonly MarkdownToken[]): void {
  if (open === undefined || close === undefined || inline?.content !== '') return
  open.tag = 'td'
  close.tag = 'td'
}

function withLinks(
  tokens: readonly MarkdownToken[],
  source: string,
  targets: LinkTargets,
  { problems, assets }: Findings,
  { Token }: Pick<MarkdownState, 'Token'>,
): MarkdownToken[] {
  let openPath: { readonly path: string; words: string } | undefined
  return tokens.flatMap(token => {
    if (openPath !== undefined) {
      if (token.type !== 'link_close') openPath.words += token.content
      else {
        const { path, words } = openPath
        openPath = undefined
        token.tag = 'span'
        if (words.includes(path)) return [token]
        const text = new Token('text', '', 0)
        text.content = ` (${path})`
        return [text, token]
      }
    }
    const attribute = token.type === 'link_open' ? 'href' : token.type === 'image' ? 'src' : undefined
    if (attribute === undefined) return [token]
    const link = resolveLink(source, token.attrGet(attribute) ?? '', targets)
    switch (link.type) {
      case 'href':
        token.attrSet(attribute, link.href)
        break
      case 'asset':
        assets.add(link.path)
        token.attrSet(attribute, link.href)
        break
      case 'path':
        token.tag = 'span'
        token.attrs = [['class', 'path']]
        openPath = { path: link.path, words: '' }
        break
      case 'dead':
        problems.push(`${source}: ${link.why}`)
        // The check of the written pages would find it again.
        token.attrs = []
        break
      default:
        link satisfies never
    }
    return [token]
  })
}
