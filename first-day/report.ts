/** The result of a run: a table for the terminal, and the page docs/first-day.md. */
import { waitedNote } from '../bench/machine.ts'
import { tableLines } from '../src/terminal/table.ts'
import type { Substitution } from './placeholders.ts'
import type { PlannedUser } from './plan.ts'
import type { PlayedUser, Result } from './play.ts'
import type { Recorded } from './results.ts'
import { type Target, users } from './users.ts'

/** Breaks of a long command do not fit into a table. */
const oneLine = (text: string): string => text.replaceAll(/\s*\\\n\s*/g, ' ').replaceAll(/\n\s*/g, ' ⏎ ')

export const minutes = (seconds: number): string =>
  `${Math.floor(seconds / 60)} min ${Math.round(seconds % 60)} s`.replace(/^0 min /, '')

export function resultText(result: Result): string {
  switch (result.kind) {
    case 'ok':
      return 'ok'
    case 'differs':
      return `differs: ${result.missing.join('; ')}`
    case 'failed':
      return `failed (${result.code})`
    default:
      return result satisfies never
  }
}

export function planText(plan: readonly PlannedUser[]): string {
  return plan
    .map(({ user, commands }) =>
      [
        `${user.name}: ${user.is}, ${commands.length} commands`,
        ...tableLines(
          ['STEP', 'PAGE', 'COMMAND'],
          commands.map(({ step, at, typed }) => [step, at, oneLine(typed)]),
        ),
      ].join('\n'),
    )
    .join('\n\n')
}

export const playedText = (user: PlayedUser): string =>
  [
    ...tableLines(
      ['STEP', 'PAGE', 'COMMAND', 'SECONDS', 'RESULT'],
      user.commands.map(({ step, at, typed, seconds, result }) => [
        ...[step, at, oneLine(typed).slice(0, 90), seconds.toFixed(1), resultText(result)],
      ]),
      { right: new Set([3]) },
    ),
    '',
    summaryOf(user),
    ...milestones(user),
  ].join('\n')

function summaryOf({ name, commands, left, seconds }: PlayedUser): string {
  const end = left > 0 ? `, then ${left} were left` : ''
  return `${name}: ${commands.length} commands in ${minutes(seconds)}${end}`
}

const targetsOf = (name: string): readonly Target[] => users.find(user => user.name === name)?.targets ?? []

const milestones = (user: PlayedUser): readonly string[] =>
  Object.entries(user.reached).map(([milestone, seconds]) => {
    const targets = targetsOf(user.name).filter(target => target.milestone === milestone)
    const wanted = targets.map(target => `${target.minutes} min ${target.when}`).join(', ')
    return `${milestone} after ${minutes(seconds)}; target: at most ${wanted}`
  })

const cell = (text: string): string => text.replaceAll('|', '\\|')
const code = (text: string): string => {
  const fence = text.includes('`') ? '``' : '`'
  return cell(`${fence}${oneLine(text)}${fence}`)
}
const row = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`

/** docs/first-day.md. */
export function pageOf(played: readonly Recorded[], substitutions: readonly Substitution[]): string {
  return [
    '# A first day',
    '',
    'How long the pages take. `npm run first-day` plays three users: it makes a fresh checkout, takes the commands out of the pages, types them',
    'into a shell, and compares what they print with what the pages show. `npm run first-day -- --list` shows the commands, and',
    '`npm run first-day -- --write` writes this page. No user reads here, so the times are those of the commands alone. The results of builds',
    'were in the cache.',
    '',
    row(['user', 'commands', 'time', 'milestone', 'target']),
    row(['---', '--:', '--:', '---', '---']),
    ...played.map(summaryRow),
    '',
    'The platform engineer and the game engineer have a [playground](try.md) without the operator, whose nodes have the public images of the',
    'samples. The upgrade installs the same version again: an upgrade from an earlier one is a test (`test/e2e/memory/upgrade.test.ts`).',
    '',
    '## Differences from the pages',
    row(['on the page', 'typed', 'because']),
    row(['---', '---', '---']),
    ...substitutions.map(({ on, by, because }) => row([code(on), code(by), because])),
    ...played.flatMap(user => [
      '',
      `## ${user.is.charAt(0).toUpperCase()}${user.is.slice(1)}`,
      `\`npm run first-day -- --user ${user.name}\`, ${originText(user)}.`,
      '',
      row(['step', 'page', 'command', 'seconds', 'result']),
      row(['---', '---', '---', '--:', '---']),
      ...user.commands.map(({ step, at, written, seconds, result }) =>
        row([step, at, code(written), seconds.toFixed(1), cell(resultText(result))]),
      ),
    ]),
    '',
  ].join('\n')
}

const originText = ({ origin }: Recorded): string =>
  `${origin.date}, commit ${origin.commit}, ${origin.machine}${waitedNote(origin.waited)}`

/** Commands that were not typed any more count, too. */
const numberOf = ({ commands, left }: Recorded): string =>
  left > 0 ? `${commands.length} of ${commands.length + left}` : String(commands.length)

function summaryRow(user: Recorded): string {
  const reached = Object.entries(user.reached).map(
    ([milestone, seconds]) => `${milestone}: ${minutes(seconds)}`,
  )
  const targets = targetsOf(user.name).map(target => `${target.minutes} min ${target.when}`)
  return row([
    ...[user.is, numberOf(user), minutes(user.seconds)],
    ...[reached.join(', '), targets.join(', ')],
  ])
}
