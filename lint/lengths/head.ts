/** Finds the reason that the head of a long file gives. */
import { parseTypeScript } from '../parse.ts'

/** Comments before the first line of code, in C also between `#include` lines; a string cannot come earlier. */
const headOfC = /^(?:\s|#.*|\/\/.*|\/\*[\s\S]*?\*\/)*/u

/** @throws Error where a TypeScript file cannot be parsed. */
export function givesReason(path: string, source: string): boolean {
  return /^[\s/*]*Long because \S/mu.test(path.endsWith('.ts') ? headOf(path, source) : headOfCFile(source))
}

/** The comments above the first statement that imports nothing. */
function headOf(path: string, source: string): string {
  const { program, comments } = parseTypeScript(path, source)
  const first = program.body.find(({ type }) => type !== 'ImportDeclaration')
  return comments
    .filter(({ start }) => first === undefined || start < first.start)
    .map(({ value }) => value)
    .join('\n')
}

const headOfCFile = (source: string): string => headOfC.exec(source)?.[0] ?? ''
