/** The limits on the lengths of files and functions. */
import { functionsOf } from './functions.ts'
import { givesReason } from './head.ts'

const limits = { file: 300, function: 60 }

export interface TooLong {
  readonly path: string
  readonly sentence: string
}

/**
 * Finds functions that are too long, and long files whose head has no line `Long because ...`. Functions in files of tests
 * may be long: `describe` and `it` get their cases as functions.
 * @throws Error where a TypeScript file cannot be parsed.
 */
export function tooLong(path: string, source: string): readonly TooLong[] {
  const lines = source.trimEnd().split('\n').length
  const long =
    lines > limits.file && !givesReason(path, source)
      ? [`${path} has ${lines} lines, and no line of its head begins with "Long because"`]
      : []
  const functions = !path.endsWith('.ts') || path.endsWith('.test.ts') ? [] : functionsOf(path, source)
  const tall = functions
    .filter(({ own }) => own > limits.function)
    .map(({ name, line, own }) => `${path}:${line}: ${name} has ${own} lines of its own`)
  return [...long, ...tall].map(sentence => ({ path, sentence }))
}

export interface Verdict {
  /** Too long, in files that are exempt for now. */
  readonly exempt: readonly string[]
  /** Too long, or exempt without need. */
  readonly refused: readonly string[]
}

/** @param notYet paths of files that are exempt for now. */
export function judge(found: readonly TooLong[], notYet: readonly string[]): Verdict {
  const isExempt = ({ path }: TooLong) => notYet.includes(path)
  const needless = notYet.filter(file => found.every(({ path }) => path !== file))
  return {
    exempt: found.filter(isExempt).map(({ sentence }) => sentence),
    refused: [
      ...found.filter(each => !isExempt(each)).map(({ sentence }) => sentence),
      ...needless.map(path => `${path} needs no entry in lint/lengths/not-yet.ts any more`),
    ],
  }
}
