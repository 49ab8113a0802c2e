import { expect, it } from 'vitest'
import { withBlock } from '../bench/figures.ts'
import type { Plan, Row } from './record.ts'
import { resultsText } from './results.ts'

const plan: Plan = { type: 'plan', seed: 7, rounds: 5, from: 1, what: ['all'], grant: false }
const row = (round: number, commit: string): Row => ({
  ...{ type: 'round', round, commit, nemeses: ['kill'], outages: [100], figures: [] },
  violations: round === 2 ? [{ rule: 'Hung', says: 'it hung' }] : [],
})

it('a record that is not complete says how many of its rounds are played, and with which code', () => {
  const rows = [row(1, 'aaaaaaa'), row(2, 'aaaaaaa'), row(3, 'bbbbbbb')]
  expect(resultsText([{ plan, rows }]).split('\n')).toEqual([
    '| run | rounds | violations | commits |',
    '| --- | --: | --: | --- |',
    '| `npm run drill -- all --rounds 5 --seed 7` | 3 of 5 | 1 | aaaaaaa, bbbbbbb |',
    '',
    '```text',
    'nemesis  rounds  violations  outage: median  p95     max',
    'kill     3       1           100 ms          100 ms  100 ms',
    '```',
  ])
  expect(resultsText([{ plan: { ...plan, grant: true }, rows }])).toContain('--seed 7 --grant`')
})

it('the page keeps what is around its marks, again and again', () => {
  const page = 'a\n<!-- results: npm run generate -->\nold\n<!-- end of results -->\nb\n'
  const once = withBlock(page, 'results', 'new')
  expect(once).toBe('a\n<!-- results: npm run generate -->\nnew\n<!-- end of results -->\nb\n')
  expect(withBlock(once, 'results', 'new')).toBe(once)
  expect(() => withBlock('nothing', 'results', 'new')).toThrow(/has lost its lines/)
})
