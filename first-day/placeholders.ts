/** Words of a page that a user replaces by words of their own. */

import type { Typed } from './commands.ts'
import { PageError } from './page.ts'

/** A replacement that a user makes in their head. */
export interface Substitution {
  /** Text on the page. */
  readonly on: string
  /** Pages on which it counts; default: all. */
  readonly page?: string
  readonly by: string
  /** The reason: a sentence of the page, or a property of the cluster. */
  readonly because: string
}

/**
 * Words in capitals that are neither variables, nor their assignment, nor the title of a column; registries, and dots in place of
 * something.
 */
const placeholder =
  /(?<![$\w{.-])[A-Z]{2,}(?:-[A-Z]+)*(?![\w=.-]|:\.|'?\n)|\bregistry\.example[\w./-]*|\.{3}/u

/**
 * @returns the command as the user types it
 * @throws PageError if a placeholder is left
 */
export function substituted(
  command: Typed,
  substitutions: readonly Substitution[],
  used: (substitution: Substitution) => void = () => {},
): string {
  let { text } = command
  for (const substitution of substitutions) {
    const { on, page = command.page, by } = substitution
    if (page !== command.page || !text.includes(on)) continue
    used(substitution)
    text = text.replaceAll(on, by)
  }
  const [left] = placeholder.exec(text) ?? []
  if (left !== undefined)
    throw new PageError(
      command.page,
      command.line,
      `${left} stands for something that the user chooses, and first-day/substitutions.ts does not say what: ${text}`,
    )
  return text
}
