import { expect, it } from 'vitest'
import { renderSummary, summarise } from './summary.ts'

const row = (nemeses: readonly string[], outages: readonly number[] = []) => ({
  nemeses,
  outages,
  violations: [],
})

it('outages count for a nemesis only if it came alone', () => {
  const lines = summarise([
    row(['kill'], [100, 300]),
    row(['kill'], [200]),
    row(['kill', 'agent'], [9_000]),
    row(['agent']),
  ])
  expect(lines.map(({ nemesis, rounds, median, max }) => [nemesis, rounds, median, max])).toEqual([
    ['agent', 1, undefined, undefined],
    ['kill', 2, 200, 300],
    ['several', 1, 9_000, 9_000],
  ])
})

it('a summary is a table', () => {
  expect(renderSummary(summarise([row(['kill'], [100])])).split('\n')).toEqual([
    'nemesis  rounds  violations  outage: median  p95     max',
    'kill     1       0           100 ms          100 ms  100 ms',
  ])
})
