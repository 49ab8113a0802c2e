/** Finds the prose of a source file: its comments, laid out as Markdown with every line where it stands in the file. */
import { parseTypeScript } from '../parse.ts'

interface Span {
  readonly start: number
  readonly end: number
}

/** @throws Error where the file cannot be parsed. */
export function proseOf(path: string, source: string): string {
  if (path.endsWith('.md')) return source
  return layOut(source, path.endsWith('.ts') ? parseTypeScript(path, source).comments : commentsOfC(source))
}

/** Strings are matched, too, so that `"//"` begins no comment. */
const cTokens = /"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|\/\*[\s\S]*?\*\/|\/\/[^\n]*/gu

const commentsOfC = (source: string): readonly Span[] =>
  [...source.matchAll(cTokens)]
    .filter(([text]) => text.startsWith('/'))
    .map(({ index, 0: text }) => ({ start: index, end: index + text.length }))

function layOut(source: string, comments: readonly Span[]): string {
  const lines: string[] = source.split('\n').map(() => '')
  for (const { start, end } of comments) {
    const first = source.slice(0, start).split('\n').length - 1
    const text = source.slice(start, end).replace(/^\/\*+|\*+\/$/gu, '')
    for (const [index, line] of text.split('\n').entries()) lines[first + index] = withoutMarks(line)
  }
  return lines.join('\n')
}

/** A tag begins an item of a list, so that its sentence is not taken for the rest of the one before. */
const withoutMarks = (line: string): string =>
  line.replace(/^\s*(?:\*|\/\/+)?\s*/u, '').replace(/^@\w+\s*/u, '- ')
