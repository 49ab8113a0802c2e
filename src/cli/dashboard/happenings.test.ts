import { expect, test } from 'vitest'
import { migration } from '../testing/moves.ts'
import { set } from '../testing/objects.ts'
import { happeningsOf } from './happenings.ts'

const at = (text: string) => Date.parse(text)

test('failovers of the status come with their phases, newest first', () => {
  const common = { reason: 'Died', seconds: 0.3, how: 'Frozen', stateAge: 0.4 } as const
  const failovers = [
    {
      ...common,
      slot: 0,
      from: 'a',
      to: 'b',
      at: '2030-01-01T00:10:00Z',
      phases: { published: 0.1, serving: 0.2, zeal: 1, lease: 0.3 },
    },
    { ...common, slot: 1, from: 'c', to: 'd', at: '2030-01-01T00:20:00Z' },
  ]
  expect(happeningsOf(set({ failovers }), [])).toMatchObject([
    { type: 'failover', slot: 1, from: 'c', to: 'd', at: at('2030-01-01T00:20:00Z'), phases: [] },
    {
      ...{ slot: 0, outcome: 'done', seconds: 0.3, how: 'Frozen', stateAge: 0.4 },
      phases: [
        { name: 'lease', seconds: 0.3 },
        { name: 'serving', seconds: 0.2 },
        { name: 'published', seconds: 0.1 },
        { name: 'zeal', seconds: 1 },
      ],
    },
  ])
})

test('a set of an operator that keeps no list has its last failover', () => {
  expect(happeningsOf(set(), [])).toMatchObject([{ from: 'web-old', to: 'web-p' }])
})

test('the last phase of a running move has no end; every phase of a finished move has one', () => {
  const phaseTimes = [
    { phase: 'Pending', at: '2030-01-01T00:10:00Z' },
    { phase: 'Preparing', at: '2030-01-01T00:10:02Z' },
  ] as const
  const running = migration('m', 'Preparing', 'MemoryComing')
  const over = migration('n', 'Succeeded')
  const told = [
    { ...running, status: { ...running.status, phaseTimes } },
    {
      ...over,
      status: {
        ...over.status,
        phaseTimes: [...phaseTimes, { phase: 'Succeeded', at: '2030-01-01T00:10:05Z' } as const],
      },
    },
  ]
  const [first, second] = happeningsOf(set({}, {}), told).filter(({ type }) => type === 'move')
  expect(first).toMatchObject({
    ...{ outcome: 'under way', from: 'web-p on n1', why: 'MemoryComing: the words' },
    phases: [{ name: 'Pending', seconds: 2 }, { name: 'Preparing' }],
  })
  expect(first).not.toHaveProperty('seconds')
  expect(second).toMatchObject({
    ...{ outcome: 'done', seconds: 5 },
    phases: [
      { name: 'Pending', seconds: 2 },
      { name: 'Preparing', seconds: 3 },
    ],
  })
})

test('a time that is none comes last, and breaks nothing', () => {
  const failovers = [
    { slot: 0, from: 'a', to: 'b', reason: 'Died', seconds: 1, at: 'never' },
    { slot: 0, from: 'b', to: 'c', reason: 'Died', seconds: 1, at: '2030-01-01T00:20:00Z' },
  ]
  expect(happeningsOf(set({ failovers }), []).map(({ to }) => to)).toEqual(['c', 'b'])
})
