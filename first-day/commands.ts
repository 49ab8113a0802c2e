/** Single commands of a block, as a user types them into a shell. */
import { spawnSync } from 'node:child_process'
import { type Block, PageError } from './page.ts'

export interface Typed {
  readonly page: string
  /** Line of its first line in the page. */
  readonly line: number
  /** As the page has it, without comments. */
  readonly text: string
  /** Output that the page announces: a JSON object in the comment, or the lines of a `console` block. */
  readonly expected: Expected | undefined
}

export type Expected =
  /** Part of the output; `...` stands for anything. */
  | { readonly kind: 'object'; readonly text: string }
  /** The first word of each line has to come, in this order. */
  | { readonly kind: 'lines'; readonly lines: readonly string[] }

/** @throws PageError where the block ends within a command */
export function commandsOf(block: Block): readonly Typed[] {
  const commands: Typed[] = []
  let open: { readonly line: number; readonly lines: string[] } | undefined
  for (const [index, raw] of block.text.split('\n').entries()) {
    if (open === undefined && /^\s*(?:#.*)?$/.test(raw)) continue
    open ??= { line: block.line + 1 + index, lines: [] }
    open.lines.push(raw)
    if (!isComplete(open.lines.join('\n'))) continue
    commands.push({
      page: block.page,
      line: open.line,
      text: open.lines.map(withoutComment).join('\n'),
      expected: objectIn(open.lines),
    })
    open = undefined
  }
  if (open !== undefined) throw new PageError(block.page, open.line, 'this is no complete command of a shell')
  const last = commands.at(-1)
  if (block.shown === undefined || last === undefined) return commands
  const lines = block.shown.split('\n').filter(line => line.trim() !== '')
  return [...commands.slice(0, -1), { ...last, expected: { kind: 'lines', lines } }]
}

/** A comment begins after two spaces or more, so that a `#` within a word or a quotation is none. */
const comment = /\s{2,}#\s.*$/

const withoutComment = (line: string): string => line.replace(comment, '')

function objectIn(lines: readonly string[]): Expected | undefined {
  const [text] = /\{.*\}/.exec(lines.map(line => comment.exec(line)?.[0] ?? '').join(' ')) ?? []
  return text === undefined ? undefined : { kind: 'object', text }
}

/** bash itself decides. It accepts a trailing backslash and, with a warning, a here-document without its end. */
function isComplete(text: string): boolean {
  if (text.endsWith('\\')) return false
  const { status, stderr } = spawnSync('bash', ['-n'], { input: `${text}\n`, encoding: 'utf8' })
  return status === 0 && stderr === ''
}
