import { table } from '../src/terminal/table.ts'
import { type Summary, summarise } from './statistics.ts'

/** `s` and `bytes` are printed in readable units; in JSON they stay seconds and bytes. */
export type Unit =
  | 's'
  | 'bytes'
  | 'writes'
  | 'passes'
  | 'pods/s'
  | 'changes'
  | 'requests'
  | 'requests/s'
  | 'ratio'

export interface Case extends Summary {
  readonly case: string
  readonly unit: Unit
  /** Medians of the baselines of this case. Smaller is better unless the unit is a rate. */
  readonly baselines: Readonly<Record<string, number>>
}

export interface Report {
  readonly name: string
  readonly cases: readonly Case[]
}

/** The run that a report comes from. */
export interface Origin {
  readonly command: string
  /** Day in UTC, such as 2026-11-22. */
  readonly date: string
  readonly machine: string
  /** Share of the time in which a task waited for a processor; absent if the kernel does not report it. */
  readonly waited?: number
}

/** A report as a file holds it. */
export interface Result extends Report {
  readonly origin: Origin
}

export interface Sampler {
  /**
   * Notes one measurement.
   * @throws RangeError if it is not a finite number
   */
  add(name: string, unit: Unit, value: number): void
  /** Returns all values noted for a case. */
  values(name: string): readonly number[]
}

export interface Samples extends Sampler {
  /**
   * Returns the cases in the order in which they were first noted.
   * @param baselines by case: fixed figures, or the name of a case of the same run whose median is the baseline
   */
  report(name: string, baselines?: Baselines): Report
  /** Returns every value, a line each: case, unit, trial (from 1), value. */
  csv(): string
}

export type Baselines = Readonly<Record<string, Readonly<Record<string, number | { readonly case: string }>>>>

export function createSamples(): Samples {
  const noted = new Map<string, { unit: Unit; values: number[] }>()
  return {
    add(name, unit, value) {
      if (!Number.isFinite(value)) throw new RangeError(`${name}: not a measured value: ${value}`)
      const entry = noted.get(name) ?? { unit, values: [] }
      if (entry.unit !== unit) throw new Error(`${name} was measured in ${entry.unit}, not ${unit}`)
      entry.values.push(value)
      noted.set(name, entry)
    },
    values: name => noted.get(name)?.values ?? [],
    csv: () =>
      [
        'case,unit,trial,value',
        ...[...noted].flatMap(([name, { unit, values }]) =>
          values.map((value, index) => [quoted(name), unit, index + 1, value].join(',')),
        ),
        '',
      ].join('\n'),
    report(name, baselines = {}) {
      const summaries = new Map([...noted].map(([key, { values }]) => [key, summarise(values)]))
      const unknown = Object.keys(baselines).filter(key => !noted.has(key))
      if (unknown.length > 0) throw new Error(`never measured: ${unknown.join(', ')}`)
      return {
        name,
        cases: [...noted].map(([key, { unit, values }]) => ({
          case: key,
          ...summarise(values),
          unit,
          baselines: Object.fromEntries(
            Object.entries(baselines[key] ?? {}).map(([label, baseline]) => {
              if (typeof baseline === 'number') return [label, baseline]
              const measured = summaries.get(baseline.case)
              if (measured === undefined) throw new Error(`never measured: ${baseline.case}`)
              return [label, measured.median]
            }),
          ),
        })),
      }
    },
  }
}

/** Quotes a field by RFC 4180. */
const quoted = (text: string): string => (/[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text)

/** Renders a text table, one line a case; further baselines of a case follow on lines of their own. */
export function renderReport(report: Report): string {
  const header = ['case', 'n', 'median', 'p95', 'p99', 'max', 'unit', 'baseline', '', 'ratio']
  return table(header, report.cases.flatMap(rowsOf), {
    gap: '  ',
    right: figures,
    keepEmpty: true,
    rule: true,
  })
}

/** Columns of `renderReport`. */
const figures = new Set([1, 2, 3, 4, 5, 8, 9])

function rowsOf(it: Case): string[][] {
  const { unit, scale, digits } = scaleOf(it)
  const show = (value: number) => (value / scale).toFixed(digits)
  const own = [it.case, String(it.n), show(it.median), show(it.p95), show(it.p99), show(it.max), unit]
  const baselines = Object.entries(it.baselines).map(([label, value]) => [
    label,
    show(value),
    value === 0 ? '' : (it.median / value).toFixed(2),
  ])
  if (baselines.length === 0) return [[...own, '', '', '']]
  return baselines.map((baseline, index) => [...(index === 0 ? own : own.map(() => '')), ...baseline])
}

function scaleOf(it: Case): { unit: string; scale: number; digits: number } {
  switch (it.unit) {
    case 's':
      // One unit for the whole table makes figures easier to compare than the best unit for each line.
      return { unit: 's', scale: 1, digits: 4 }
    case 'bytes':
      return { unit: 'KiB', scale: 1024, digits: 0 }
    case 'writes':
    case 'passes':
    case 'changes':
    case 'requests':
      return { unit: it.unit, scale: 1, digits: Number.isInteger(it.median) ? 0 : 1 }
    case 'pods/s':
    case 'requests/s':
      return { unit: it.unit, scale: 1, digits: 1 }
    case 'ratio':
      return { unit: '', scale: 1, digits: 3 }
    default:
      return it.unit satisfies never
  }
}
