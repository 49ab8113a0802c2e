import { type Anything, objectIn } from './unknown.ts'

/**
 * Reads an annotation that holds a JSON object; undefined if it is absent or no JSON.
 *
 * @param longest characters; a longer text counts as no JSON.
 */
export function readAnnotation(text: string | undefined, longest: number): Anything | undefined {
  if (text === undefined || text.length > longest) return undefined
  try {
    return objectIn(JSON.parse(text))
  } catch {
    // An administrator has edited it.
    return undefined
  }
}
