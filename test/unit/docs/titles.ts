/** Titles of tests, as documents name them. */
import { existsSync, readFileSync } from 'node:fs'

/**
 * Returns true if a title of a test or group in this file has these words. A title is on the line of its call, on the
 * next line, or after a table of cases.
 */
export function hasTitle(path: string, words: string): boolean {
  if (!existsSync(path)) return false
  const titles = readFileSync(path, 'utf8').matchAll(
    /\b(?:it|test|describe)\b[^\n]*\n?[^\n]*|^ *\]?(?: as const)?\)\(\n?[^\n]*/gm,
  )
  return [...titles].some(([title]) => title.includes(words))
}
