/** The table of a run, for the terminal and for docs/portability.md. Pure. */
import { tableLines } from '../src/terminal/table.ts'
import type { KindResult, Outcome } from './results.ts'
import { trials } from './trials.ts'

const trialTitles = (): readonly string[] => trials.map(({ title }) => title)

export function outcomeText(outcome: Outcome | undefined): string {
  if (outcome === undefined) return '-'
  switch (outcome.kind) {
    case 'ok':
      return `ok (${outcome.seconds.toFixed(0)} s)`
    case 'failed':
      return 'FAILED'
    case 'refused':
      return 'refused'
    default:
      return outcome satisfies never
  }
}

const cells = ({ title, facts, canary, trials: outcomes }: KindResult): string[] => [
  title,
  facts?.kernel ?? '-',
  facts === undefined ? '-' : `${facts.cgroups}, systemd ${facts.systemd}`,
  facts === undefined ? '-' : `${facts.runtime.replace('://', ' ')}, runc ${facts.runc}`,
  outcomeText(canary),
  ...trials.map(({ name }) => outcomeText(outcomes[name])),
]

const titles = ['node', 'kernel', 'control groups', 'runtime', 'canary']

/** The table, and below it the reason of each outcome that is not `ok`. */
export function resultText(results: readonly KindResult[]): string {
  return [
    ...tableLines(
      [...titles, ...trialTitles()].map(title => title.toUpperCase()),
      results.map(cells),
    ),
    ...results.flatMap(reasons),
  ].join('\n')
}

/** Returns a line for each outcome that is not `ok`, and for each finding of doctor. */
export function reasons({ kind, canary, trials: outcomes, doctor }: KindResult): string[] {
  const named: readonly (readonly [string, Outcome | undefined])[] = [
    ['canary', canary],
    ...trials.map(({ name, title }) => [title, outcomes[name]] as const),
  ]
  return [
    ...named.flatMap(([title, outcome]) =>
      outcome === undefined || outcome.kind === 'ok' ? [] : [`${kind}, ${title}: ${outcome.reason}`],
    ),
    ...doctor.map(finding => `${kind}, doctor: ${finding}`),
  ].map(line => line.replaceAll(/\s*\n\s*/g, ' '))
}

const row = (of: readonly string[]): string => `| ${of.map(cell).join(' | ')} |`
const cell = (text: string): string => text.replaceAll('|', '\\|').replaceAll('\n', ' ')

/** Marks of the generated part of the page. */
export const marks = { begin: '<!-- portability: begin -->', end: '<!-- portability: end -->' } as const

/** Returns the generated part of docs/portability.md, with its marks. */
export function generatedPart(results: readonly KindResult[]): string {
  const header = [...titles, ...trialTitles()]
  return [
    marks.begin,
    row(header),
    row(header.map(() => '---')),
    ...results.map(result => row(cells(result))),
    '',
    ...results.map(originLine),
    ...results.flatMap(reasons).map(reason => `- ${cell(reason)}`),
    marks.end,
  ].join('\n')
}

function originLine({ title, date, commit, machine, facts, labels }: KindResult): string {
  const about =
    facts === undefined
      ? []
      : [
          facts.os,
          `kubelet ${facts.kubelet}`,
          `security modules ${facts.securityModules}`,
          ...labels.map(label => `restored processes have the label \`${label}\``),
        ]
  return `- ${title}: ${[date, `commit ${commit}`, ...about].join(', ')}. Emulated on ${machine}.`
}

/** @throws if the page has no such part */
export function withGeneratedPart(page: string, part: string): string {
  const begin = page.indexOf(marks.begin)
  const end = page.indexOf(marks.end)
  if (begin < 0 || end < begin)
    throw new Error(`the page has no part between ${marks.begin} and ${marks.end}`)
  return page.slice(0, begin) + part + page.slice(end + marks.end.length)
}
