/** The limits on the lengths of files and functions. */
import { functionsOf } from './functions.ts'
import { givesReason } from './head.ts'

const limits = { file: 300, function: 60 }

/**
 * Returns a sentence for each function that is too long, and for a long file whose head has no line `Long because ...`. Functions in files of tests
 * may be long: `describe` and `it` get their cases as functions.
 * @throws Error where a TypeScript file cannot be parsed.
 */
export function tooLong(path: string, source: string): readonly string[] {
  const lines = source.trimEnd().split('\n').length
  const long =
    lines > limits.file && !givesReason(path, source)
      ? [`${path} has ${lines} lines, and no line of its head begins with "Long because"`]
      : []
  const functions = !path.endsWith('.ts') || path.endsWith('.test.ts') ? [] : functionsOf(path, source)
  const tall = functions
    .filter(({ own }) => own > limits.function)
    .map(({ name, line, own }) => `${path}:${line}: ${name} has ${own} lines of its own`)
  return [...long, ...tall]
}
