import { expect, it } from 'vitest'
import { renderFigures, renderMoves, renderSummary, summarise } from './summary.ts'

const row = (nemeses: readonly string[], outages: readonly number[] = []) => ({
  nemeses,
  outages,
  figures: [],
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

it('a fault during a move is counted apart from the same fault alone', () => {
  const lines = summarise([
    row(['move', 'kill'], [900]),
    row(['move-twice', 'kill'], [700]),
    row(['kill'], [100]),
  ])
  expect(lines.map(({ nemesis, rounds }) => [nemesis, rounds])).toEqual([
    ['kill', 1],
    ['kill during a move', 2],
  ])
})

it('Migrations are counted by their ends', () => {
  const moved = { ended: 'Succeeded', phase: 'Succeeded', reason: 'Moved' } as const
  const off = { ended: 'CalledOff', phase: 'Stopping', reason: 'MemoryComing' } as const
  expect(
    renderMoves([
      { ...row(['move', 'kill']), moves: [moved, off] },
      { ...row(['move']), moves: [moved] },
    ]).split('\n'),
  ).toEqual([
    'Migrations  phase or reason  count',
    'CalledOff   Stopping         1',
    'Succeeded   Moved            2',
  ])
  expect(renderMoves([row(['kill'])])).toBe('')
})

it('a summary is a table', () => {
  expect(renderSummary(summarise([row(['kill'], [100])])).split('\n')).toEqual([
    'nemesis  rounds  violations  outage: median  p95     max',
    'kill     1       0           100 ms          100 ms  100 ms',
  ])
})

it('figures are counted by nemesis, with those that never came', () => {
  const figures = [5, 1, undefined, 3].map(ms => ({ name: 'resume to stop', ms }) as const)
  expect(renderFigures([{ ...row(['pause-long']), figures }]).split('\n')).toEqual([
    'nemesis     figure          count  median  p95   max   never',
    'pause-long  resume to stop  3      3 ms    5 ms  5 ms  1',
  ])
  expect(renderFigures([row(['kill'])])).toBe('')
})
