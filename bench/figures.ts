/**
 * `npm run generate` writes docs/figures.md and the figures of README.md and docs/is-it-for-me.md from `bench/results`; `--check` compares
 * them.
 */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { costs, failures, type Headline, headlines } from './headlines.ts'
import { waitedNote } from './machine.ts'
import type { Case, Result, Unit } from './report.ts'

const root = new URL('../', import.meta.url)
const resultsPath = new URL('bench/results/', root)
const figuresPath = new URL('docs/figures.md', root)
const readmePath = new URL('README.md', root)
const adoptionPath = new URL('docs/is-it-for-me.md', root)

/** Returns a measured value with its unit, to three digits. */
export function shown(value: number, unit: Unit): string {
  switch (unit) {
    case 's':
      return value === 0 ? '0' : value < 1 ? `${threeDigits(value * 1000)} ms` : `${threeDigits(value)} s`
    case 'bytes':
      return value < 1e6
        ? `${threeDigits(value / 1e3)} KB`
        : value < 1e9
          ? `${threeDigits(value / 1e6)} MB`
          : `${threeDigits(value / 1e9)} GB`
    case 'ratio':
      return value.toFixed(value < 0.1 ? 3 : 2)
    case 'requests/s':
    case 'pods/s':
      return value < 10 ? `${value.toFixed(2)}/s` : `${Math.round(value).toLocaleString('en-US')}/s`
    case 'writes':
    case 'passes':
    case 'changes':
    case 'requests':
      return String(value)
    default:
      return unit satisfies never
  }
}

function threeDigits(value: number): string {
  const digits = value < 10 ? 2 : value < 100 ? 1 : 0
  return value.toFixed(digits)
}

/** Returns all cases of a result as Markdown, below the command, the date and the machine. */
export function resultTable({ origin, cases }: Result): string {
  const rows = cases.map(it => {
    const baselines = Object.entries(it.baselines).map(
      ([label, value]) =>
        `${label} ${shown(value, it.unit)}${value === 0 ? '' : ` (${(it.median / value).toFixed(2)}x)`}`,
    )
    const own = [it.median, it.p95, it.max].map(value => shown(value, it.unit))
    return row([it.case, String(it.n), ...own, baselines.join(', ')])
  })
  return [
    `\`${origin.command}\`, ${origin.date}, ${origin.machine}${waitedNote(origin.waited)}.`,
    '',
    row(['case', 'n', 'median', 'p95', 'max', 'baseline (median / baseline)']),
    row(['---', '--:', '--:', '--:', '--:', '---']),
    ...rows,
  ].join('\n')
}

/**
 * Returns a table of single figures, by default that of README.md.
 * @throws Error if a result or a case is missing
 */
export function headlineTable(results: readonly Result[], lines: readonly Headline[] = headlines): string {
  const rows = lines.map(({ what, bench, beside, besideCase, ...headline }) => {
    const own = caseOf(results, bench, headline.case)
    const other = besideCase === undefined ? undefined : caseOf(results, bench, besideCase)
    const compared = other === undefined ? beside : `${beside}: ${brief(other)}${countOf(other, own)}`
    return row([what, brief(own), String(own.n), compared, `\`npm run bench -- ${bench}\``])
  })
  return [
    row(['', 'here', 'n', 'beside it, in the same run', 'command']),
    row(['---', '---', '--:', '---', '---']),
    ...rows,
  ].join('\n')
}

/** Leaves out the p95 of a rate: it is the fast end. */
function brief({ median, p95, unit }: Case): string {
  return unit.endsWith('/s') ? shown(median, unit) : `${shown(median, unit)} / ${shown(p95, unit)}`
}

const countOf = ({ n }: Case, own: Case): string => (n === own.n ? '' : ` (n = ${n})`)

function caseOf(results: readonly Result[], bench: string, name: string): Case {
  const found = results.find(it => it.name === bench)?.cases.find(it => it.case === name)
  if (found === undefined) throw new Error(`bench/results has no case "${name}" of ${bench}`)
  return found
}

const row = (cells: readonly string[]) => `| ${cells.join(' | ')} |`

/**
 * Returns the page with the block of this name replaced.
 * @throws Error if the page has no such block
 */
export function withBlock(page: string, name: string, content: string): string {
  const begin = `<!-- ${name}: npm run generate -->`
  const end = `<!-- end of ${name} -->`
  const from = page.indexOf(begin)
  const to = page.indexOf(end)
  if (from < 0 || to < from) throw new Error(`a page of figures has lost its lines "${begin}" and "${end}"`)
  return `${page.slice(0, from + begin.length)}\n${content}\n${page.slice(to)}`
}

function readResults(): readonly Result[] {
  return readdirSync(resultsPath)
    .sort()
    .map(name => JSON.parse(readFileSync(new URL(name, resultsPath), 'utf8')) as Result)
}

/** Returns all pages as the results want them, with the text that they have now. */
function pages(): readonly { readonly path: URL; readonly now: string; readonly wanted: string }[] {
  const results = readResults()
  const figures = readFileSync(figuresPath, 'utf8')
  const readme = readFileSync(readmePath, 'utf8')
  const adoption = readFileSync(adoptionPath, 'utf8')
  return [
    {
      path: figuresPath,
      now: figures,
      wanted: results.reduce((page, it) => withBlock(page, it.name, resultTable(it)), figures),
    },
    { path: readmePath, now: readme, wanted: withBlock(readme, 'figures', headlineTable(results)) },
    {
      path: adoptionPath,
      now: adoption,
      wanted: withBlock(
        withBlock(adoption, 'costs', headlineTable(results, costs)),
        'failures',
        headlineTable(results, failures),
      ),
    },
  ]
}

function writePages(): void {
  for (const { path, wanted } of pages()) writeFileSync(path, wanted)
}

/** Makes a result the last one of its bench, and writes the pages that show it. */
export function writeFigures(result: Result): void {
  writeFileSync(new URL(`${result.name}.json`, resultsPath), `${JSON.stringify(result, undefined, 2)}\n`)
  writePages()
}

if (import.meta.main) {
  if (!process.argv.includes('--check')) writePages()
  else
    for (const { path, now, wanted } of pages())
      if (now !== wanted) {
        console.error(
          `${path.pathname.slice(root.pathname.length)} differs from bench/results: run \`npm run generate\``,
        )
        process.exitCode = 1
      }
}
