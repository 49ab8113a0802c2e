/** Plays one user: types the commands one after the other until one of them fails. */
import { missing } from './expected.ts'
import type { PlannedCommand, PlannedUser } from './plan.ts'
import type { Shell } from './shell.ts'

export type Result =
  | { readonly kind: 'ok' }
  /** Lines of the page that the command did not print. */
  | { readonly kind: 'differs'; readonly missing: readonly string[] }
  | { readonly kind: 'failed'; readonly code: number; readonly tail: string }

export interface PlayedCommand extends PlannedCommand {
  readonly seconds: number
  readonly result: Result
  readonly output: string
}

export interface PlayedUser {
  readonly name: string
  readonly is: string
  readonly commands: readonly PlayedCommand[]
  /** Commands that were not typed any more after one had failed. */
  readonly left: number
  readonly seconds: number
  /** Seconds from the first command until the milestone is reached. */
  readonly reached: Readonly<Record<string, number>>
}

export async function play(
  { user, commands }: PlannedUser,
  shell: Pick<Shell, 'type'>,
  tell: (command: PlayedCommand) => void,
): Promise<PlayedUser> {
  const played: PlayedCommand[] = []
  const reached: Record<string, number> = {}
  let seconds = 0
  for (const command of commands) {
    const answer = await shell.type(command.typed)
    seconds += answer.seconds
    const one = { ...command, ...answer, result: resultOf(command, answer) }
    played.push(one)
    tell(one)
    if (one.result.kind === 'failed') break
    if (command.reaches !== undefined) reached[command.reaches] = seconds
  }
  const left = commands.length - played.length
  return { name: user.name, is: user.is, commands: played, left, seconds, reached }
}

function resultOf({ expected }: PlannedCommand, { code, output }: { code: number; output: string }): Result {
  if (code !== 0) return { kind: 'failed', code, tail: output.trim().split('\n').slice(-12).join('\n') }
  const lines = missing(expected, output)
  return lines.length > 0 ? { kind: 'differs', missing: lines } : { kind: 'ok' }
}
