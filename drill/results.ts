/** `npm run generate` writes the table of kept records, `drill/results/*.jsonl`, to drill/README.md; `--check` compares it. */
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { withBlock } from '../bench/figures.ts'
import { parseRecord, type RunRecord } from './record.ts'
import { renderMoves, renderSummary, summarise } from './summary.ts'

const resultsPath = new URL('results/', import.meta.url)
const pagePath = new URL('README.md', import.meta.url)

/** Returns the records as Markdown: a line for each, and the counts of all by nemesis. */
export function resultsText(records: readonly RunRecord[]): string {
  if (records.length === 0) return 'No record is kept yet.'
  const rows = records.flatMap(record => record.rows)
  const moves = renderMoves(rows)
  return [
    '| run | rounds | violations | commits |',
    '| --- | --: | --: | --- |',
    ...records.map(lineOf),
    '',
    '```text',
    renderSummary(summarise(rows)),
    ...(moves === '' ? [] : ['', moves]),
    '```',
  ].join('\n')
}

function lineOf({ plan, rows }: RunRecord): string {
  const { what, rounds, seed, grant } = plan
  const command = `npm run drill -- ${what.join(' ')} --rounds ${rounds} --seed ${seed}${grant ? ' --grant' : ''}`
  const violations = rows.reduce((sum, row) => sum + row.violations.length, 0)
  const commits = [...new Set(rows.map(({ commit }) => commit))].join(', ')
  return `| \`${command}\` | ${rows.length} of ${rounds} | ${violations} | ${commits} |`
}

function readRecords(): RunRecord[] {
  if (!existsSync(resultsPath)) return []
  return readdirSync(resultsPath)
    .filter(name => name.endsWith('.jsonl'))
    .sort()
    .map(name => parseRecord(readFileSync(new URL(name, resultsPath), 'utf8'), name))
}

if (import.meta.main) {
  const now = readFileSync(pagePath, 'utf8')
  const wanted = withBlock(now, 'results', resultsText(readRecords()))
  if (!process.argv.includes('--check')) writeFileSync(pagePath, wanted)
  else if (now !== wanted) {
    console.error('drill/README.md differs from drill/results: run `npm run generate`')
    process.exitCode = 1
  }
}
