/** The commands of each user: the blocks of the pages, as single commands, with every placeholder replaced. */
import { commandsOf, type Expected } from './commands.ts'
import { type Block, blocksOf, findBlock } from './page.ts'
import { type Substitution, substituted } from './placeholders.ts'
import type { User } from './users.ts'

export interface PlannedCommand {
  readonly step: string
  /** page:line. */
  readonly at: string
  /** As the page has it. */
  readonly written: string
  /** As the script types it. */
  readonly typed: string
  readonly expected: Expected | undefined
  /** The milestone that its end reaches. */
  readonly reaches: string | undefined
}

export interface PlannedUser {
  readonly user: User
  readonly commands: readonly PlannedCommand[]
}

/** @param read returns the text of a page by its path in the checkout */
export interface PlanInputs {
  readonly users: readonly User[]
  readonly substitutions: readonly Substitution[]
  readonly read: (page: string) => Promise<string>
}

/**
 * @throws PageError where a block is missing, or has a placeholder without a substitution
 * @throws Error if a substitution is not used
 */
export async function planOf({ users, substitutions, read }: PlanInputs): Promise<readonly PlannedUser[]> {
  const names = new Set(users.flatMap(({ steps }) => steps.map(({ link }) => link.page)))
  const pages = new Map<string, readonly Block[]>()
  for (const name of names) pages.set(name, blocksOf(name, await read(name)))
  const unused = new Set(substitutions)
  const planned = users.map(user => ({
    user,
    commands: user.steps.flatMap(({ does, link, reaches }) => {
      const typed = commandsOf(findBlock(link, pages.get(link.page) ?? []))
      return typed.map((command, index) => ({
        step: does,
        at: `${command.page}:${command.line}`,
        written: command.text,
        typed: substituted(command, substitutions, used => unused.delete(used)),
        expected: command.expected,
        reaches: index === typed.length - 1 ? reaches : undefined,
      }))
    }),
  }))
  const [idle] = unused
  if (idle !== undefined) throw new Error(`first-day/substitutions.ts: no page has ${idle.on} any more`)
  return planned
}
