/** Counts and outages of a whole drill, by nemesis. */
import type { Figure } from './check/check.ts'
import { moves } from './nemesis/nemeses.ts'
import type { Row as Round } from './record.ts'

export type Row = Pick<Round, 'nemeses' | 'outages' | 'figures' | 'violations' | 'moves'>

export interface Line {
  readonly nemesis: string
  readonly rounds: number
  readonly violations: number
  readonly median: number | undefined
  readonly p95: number | undefined
  readonly max: number | undefined
}

const moveNames: ReadonlySet<string> = new Set(moves.map(({ name }) => name))

/**
 * A round with several nemeses counts for `several`: its outage belongs to none of them. A fault during a move counts
 * under a name of its own.
 */
function nameOf({ nemeses: [first = '', ...others] }: Row): string {
  const [second] = others
  if (second === undefined) return first
  return others.length === 1 && moveNames.has(first) ? `${second} during a move` : 'several'
}

export function summarise(rows: readonly Row[]): Line[] {
  const names = [...new Set(rows.map(nameOf))].sort()
  return names.map(nemesis => {
    const own = rows.filter(row => nameOf(row) === nemesis)
    return {
      nemesis,
      rounds: own.length,
      violations: own.reduce((sum, row) => sum + row.violations.length, 0),
      ...spreadOf(own.flatMap(row => row.outages)),
    }
  })
}

type Spread = Pick<Line, 'median' | 'p95' | 'max'>

function spreadOf(times: readonly number[]): Spread {
  const sorted = times.toSorted((a, b) => a - b)
  const at = (share: number) => sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))]
  return { median: at(0.5), p95: at(0.95), max: sorted.at(-1) }
}

const ms = (value: number | undefined): string => (value === undefined ? '-' : `${value.toFixed(0)} ms`)

export function renderSummary(lines: readonly Line[]): string {
  return table([
    ['nemesis', 'rounds', 'violations', 'outage: median', 'p95', 'max'],
    ...lines.map(({ nemesis, rounds, violations, median, p95, max }) => [
      ...[nemesis, String(rounds), String(violations), ms(median), ms(p95), ms(max)],
    ]),
  ])
}

/** Returns a table of how Migrations ended; empty: there were none. Those that were called off count by their phase then. */
export function renderMoves(rows: readonly Row[]): string {
  const ends = rows.flatMap(({ moves = [] }) =>
    moves.map(
      ({ ended, phase = '-', reason = '-' }) => [ended, ended === 'CalledOff' ? phase : reason] as const,
    ),
  )
  if (ends.length === 0) return ''
  const groups = Map.groupBy(ends, end => end.join(' '))
  const lines = [...groups.values()].map(group => [...(group[0] ?? []), String(group.length)])
  return table([
    ['Migrations', 'phase or reason', 'count'],
    ...lines.sort((a, b) => (a.join() < b.join() ? -1 : 1)),
  ])
}

/** Returns a table of the times that are reported and not judged; empty: there are none. */
export function renderFigures(rows: readonly Row[]): string {
  const all = rows.flatMap(row => row.figures.map(figure => ({ ...figure, nemesis: nameOf(row) })))
  const groups = Map.groupBy(all, ({ nemesis, name }) => `${nemesis} ${name}`)
  if (groups.size === 0) return ''
  return table([
    ['nemesis', 'figure', 'count', 'median', 'p95', 'max', 'never'],
    ...[...groups.values()].map(group => figureCells(group)),
  ])
}

function figureCells(group: readonly (Figure & { readonly nemesis: string })[]): string[] {
  const times = group.flatMap(figure => figure.ms ?? [])
  const { median, p95, max } = spreadOf(times)
  const [first] = group
  return [
    ...[first?.nemesis ?? '', first?.name ?? '', String(times.length)],
    ...[ms(median), ms(p95), ms(max), String(group.length - times.length)],
  ]
}

function table(cells: readonly (readonly string[])[]): string {
  const widths = (cells[0] ?? []).map((_, column) =>
    Math.max(...cells.map(row => (row[column] ?? '').length)),
  )
  return cells
    .map(row =>
      row
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join('  ')
        .trimEnd(),
    )
    .join('\n')
}
