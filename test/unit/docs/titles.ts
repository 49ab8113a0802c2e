/** Titles of tests, as documents name them. */
import { existsSync, readFileSync } from 'node:fs'

/** Does a title in this file have these words? Of a test or a group: on the line of its call, the one after it, or after a table of cases. */
export function hasTitle(path: string, words: string): boolean {
  if (!existsSync(path)) return false
  const titles = readFileSync(path, 'utf8').matchAll(
    /\b(?:it|test|describe)\b[^\n]*\n?[^\n]*|^ *\]?(?: as const)?\)\(\n?[^\n]*/gm,
  )
  return [...titles].some(([title]) => title.includes(words))
}
