/** Compares what a command printed with what its page shows. Loosely: names, ages and numbers differ from day to day. */
import type { Expected } from './commands.ts'

/** @returns what the page shows and the output does not have */
export function missing(expected: Expected | undefined, output: string): readonly string[] {
  switch (expected?.kind) {
    case undefined:
      return []
    case 'object':
      return hasInOrder(squeezed(output), squeezed(expected.text).split('...')) ? [] : [expected.text]
    case 'lines':
      return missingLines(expected.lines, output.split('\n').map(firstWord))
    default:
      return expected satisfies never
  }
}

const squeezed = (text: string): string => text.replaceAll(/\s+/g, '')

function hasInOrder(text: string, parts: readonly string[]): boolean {
  let from = 0
  return parts.every(part => {
    const at = text.indexOf(part, from)
    from = at + part.length
    return at >= 0
  })
}

/** Without the random end of a pod's name. */
const firstWord = (line: string): string =>
  (line.trim().split(/\s+/)[0] ?? '').replace(/-[0-9a-f]{12}$/, '-*')

function missingLines(shown: readonly string[], words: readonly string[]): readonly string[] {
  let from = 0
  return shown.filter(line => {
    const at = words.indexOf(firstWord(line), from)
    if (at >= 0) from = at + 1
    return at < 0
  })
}
