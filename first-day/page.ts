/** Commands of a page: its fenced `sh` blocks, each with its heading, its marker, and the output that the page shows. */
import { parse, Syntax } from '@textlint/markdown-to-ast'

export interface Block {
  /** Path in the checkout. */
  readonly page: string
  /** Heading above it, as written. */
  readonly heading: string
  /** From `<!-- first-day: NAME -->` directly above the block. */
  readonly marker: string | undefined
  /** Line of the fence, from 1. */
  readonly line: number
  readonly text: string
  /** Content of a `console` block directly below it: the output that the page shows. */
  readonly shown: string | undefined
}

/** A page and the script do not fit together. The message begins with the page and the line. */
export class PageError extends Error {
  override readonly name = 'PageError'
  constructor(page: string, line: number, problem: string) {
    super(`${page}:${line}: ${problem}`)
  }
}

const markerOf = (html: string): string | undefined => /^<!-- first-day: ([\w-]+) -->$/.exec(html.trim())?.[1]

/** @returns all `sh` blocks of a page, in order; blocks in lists and quotes do not count */
export function blocksOf(page: string, markdown: string): readonly Block[] {
  const blocks: Block[] = []
  let heading = ''
  let marker: string | undefined
  let above: 'sh' | undefined
  for (const node of parse(markdown).children) {
    const follows = above
    above = undefined
    if (node.type === Syntax.Header) heading = node.raw.replace(/^#+\s+/, '').trim()
    else if (node.type === Syntax.CodeBlock && node.lang === 'sh') {
      const line = node.loc.start.line
      blocks.push({ page, heading, marker, line, text: node.value, shown: undefined })
      above = 'sh'
    } else if (node.type === Syntax.CodeBlock && node.lang === 'console' && follows === 'sh') {
      const last = blocks.pop()
      if (last !== undefined) blocks.push({ ...last, shown: node.value })
    }
    marker = node.type === Syntax.Html ? markerOf(node.value) : undefined
  }
  return blocks
}

/** Names a block: by its marker, or by its heading where that has only one block without a marker. */
export type Link =
  | { readonly page: string; readonly heading: string }
  | { readonly page: string; readonly marker: string }

/** @throws PageError if the page has no such block, or more than one */
export function findBlock(link: Link, blocks: readonly Block[]): Block {
  const isMarked = 'marker' in link
  const found = blocks.filter(block =>
    isMarked ? block.marker === link.marker : block.marker === undefined && block.heading === link.heading,
  )
  const [block, second] = found
  const what = isMarked ? `<!-- first-day: ${link.marker} -->` : `the heading ${JSON.stringify(link.heading)}`
  if (block === undefined) throw new PageError(link.page, 1, `no sh block below ${what}`)
  if (second !== undefined)
    throw new PageError(link.page, second.line, `a second sh block below ${what}: mark one of them`)
  return block
}
