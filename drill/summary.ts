/** Counts and outages of a whole drill, by nemesis. */
import type { Violation } from './check/violation.ts'

export interface Row {
  /** Names of the nemeses of the round. */
  readonly nemeses: readonly string[]
  readonly outages: readonly number[]
  readonly violations: readonly Violation[]
}

export interface Line {
  readonly nemesis: string
  readonly rounds: number
  readonly violations: number
  readonly median: number | undefined
  readonly p95: number | undefined
  readonly max: number | undefined
}

/** A round with several nemeses counts for `several`: its outage belongs to none of them. */
export function summarise(rows: readonly Row[]): Line[] {
  const nameOf = ({ nemeses }: Row) => (nemeses.length === 1 ? (nemeses[0] ?? '') : 'several')
  const names = [...new Set(rows.map(nameOf))].sort()
  return names.map(nemesis => {
    const own = rows.filter(row => nameOf(row) === nemesis)
    const outages = own.flatMap(row => row.outages).toSorted((a, b) => a - b)
    const at = (share: number) => outages[Math.min(outages.length - 1, Math.floor(share * outages.length))]
    return {
      nemesis,
      rounds: own.length,
      violations: own.reduce((sum, row) => sum + row.violations.length, 0),
      median: at(0.5),
      p95: at(0.95),
      max: outages.at(-1),
    }
  })
}

export function renderSummary(lines: readonly Line[]): string {
  const ms = (value: number | undefined) => (value === undefined ? '-' : `${value.toFixed(0)} ms`)
  const cells = [
    ['nemesis', 'rounds', 'violations', 'outage: median', 'p95', 'max'],
    ...lines.map(({ nemesis, rounds, violations, median, p95, max }) => [
      ...[nemesis, String(rounds), String(violations), ms(median), ms(p95), ms(max)],
    ]),
  ]
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
