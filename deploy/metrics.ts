/** `npm run generate` writes the table of metrics in docs/metrics.md; `--check` fails if the table is out of date. */
import { readFileSync, writeFileSync } from 'node:fs'
import { metricsTable } from './exported-metrics.ts'

const pagePath = new URL('../docs/metrics.md', import.meta.url)
const [begin, end] = ['<!-- metrics: npm run generate -->', '<!-- end of metrics -->']

/** @throws Error if the page has no place for the table. */
export function withMetrics(page: string): string {
  const [head, rest = ''] = page.split(begin)
  const [, tail] = rest.split(end)
  if (head === undefined || tail === undefined)
    throw new Error('docs/metrics.md has lost the marks of its table')
  return `${head}${begin}\n${metricsTable()}\n${end}${tail}`
}

if (import.meta.main) {
  const page = readFileSync(pagePath, 'utf8')
  if (!process.argv.includes('--check')) writeFileSync(pagePath, withMetrics(page))
  else if (withMetrics(page) !== page) {
    console.error('docs/metrics.md is stale: run `npm run generate` and commit the result')
    process.exitCode = 1
  }
}
