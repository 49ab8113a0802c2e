import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { benches } from './benches.ts'
import { headlineTable, resultTable, shown, withBlock } from './figures.ts'
import { costs, failures, headlines } from './headlines.ts'
import type { Case, Result } from './report.ts'

const measured = (name: string, more: Partial<Case> = {}): Case => ({
  case: name,
  n: 3,
  median: 0.05,
  p95: 0.07,
  p99: 0.08,
  max: 1.234,
  unit: 's',
  baselines: {},
  ...more,
})
const result = (name: string, cases: readonly Case[]): Result => ({
  name,
  origin: { command: `npm run bench -- ${name}`, date: '2026-01-02', machine: 'two cores', waited: 0.5 },
  cases,
})

/** Results with every case that a table shows. */
const complete = (lines = headlines): Result[] =>
  Object.entries(Object.groupBy(lines, ({ bench }) => bench)).map(([bench, of = []]) => {
    const named = new Set(
      of.flatMap(it => [it.case, ...(it.besideCase === undefined ? [] : [it.besideCase])]),
    )
    return result(
      bench,
      [...named].map(name => measured(name)),
    )
  })

describe('figures', () => {
  it('have units that are easy to read, and three digits', () => {
    expect([0, 0.0094, 0.0564, 0.1369, 1.7475].map(value => shown(value, 's'))).toEqual([
      '0',
      '9.40 ms',
      '56.4 ms',
      '137 ms',
      '1.75 s',
    ])
    expect([25172, 649384, 114321553, 1000132837].map(value => shown(value, 'bytes'))).toEqual([
      '25.2 KB',
      '649 KB',
      '114 MB',
      '1.00 GB',
    ])
    expect(shown(46158.72, 'requests/s')).toBe('46,159/s')
    expect(shown(0.9423, 'ratio')).toBe('0.94')
  })

  it('stand with their command, day, machine, n, median, p95, max and baselines', () => {
    const table = resultTable(result('x', [measured('outage', { baselines: { Deployment: 0.1 } })]))
    expect(table.split('\n').filter(line => line !== '')).toEqual([
      '`npm run bench -- x`, 2026-01-02, two cores; some process waited for a processor 50 % of the time.',
      expect.stringContaining('| case | n | median | p95 | max | baseline'),
      expect.anything(),
      '| outage | 3 | 50.0 ms | 70.0 ms | 1.23 s | Deployment 100 ms (0.50x) |',
    ])
  })

  it('of the README are ten, each with its command', () => {
    const rows = headlineTable(complete()).split('\n').slice(2)
    expect(rows).toHaveLength(10)
    for (const line of rows) expect(line).toMatch(/\| `npm run bench -- [a-z-]+` \|$/)
  })

  it('of the README come from results: without a case there is no table', () => {
    const [first, ...others] = complete()
    expect(() => headlineTable(others)).toThrow(`no case "`)
    expect(() => headlineTable([result(first?.name ?? '', []), ...others])).toThrow(first?.name)
  })

  it('of the page that helps to decide come from results, too', () => {
    for (const lines of [costs, failures]) {
      expect(headlineTable(complete(lines), lines).split('\n')).toHaveLength(lines.length + 2)
      expect(() => headlineTable([], lines)).toThrow('no case "')
    }
  })

  it('replace those that a page has, and nothing else', () => {
    const page = 'a\n<!-- x: npm run generate -->\nold\n<!-- end of x -->\nb\n'
    expect(withBlock(page, 'x', 'new')).toBe(page.replace('old', 'new'))
    expect(() => withBlock(page, 'y', 'new')).toThrow('has lost its lines')
  })

  it('have a place on docs/figures.md for every bench', () => {
    const page = readFileSync(new URL('../docs/figures.md', import.meta.url), 'utf8')
    for (const { name } of benches) expect(withBlock(page, name, 'new')).toContain('\nnew\n')
  })
})
