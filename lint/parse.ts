import { type ParseResult, parseSync } from 'oxc-parser'

/** Parses a TypeScript file. @throws Error with its path if it cannot be parsed. */
export function parseTypeScript(path: string, source: string): ParseResult {
  const parsed = parseSync(path, source)
  const [error] = parsed.errors
  if (error !== undefined) throw new Error(`${path}: ${error.message}`)
  return parsed
}
