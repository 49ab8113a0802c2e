import { expect, it } from 'vitest'
import { makeCandidate, makeLease, stage } from '../testing/slots.ts'
import { type Promote, patienceMs, withMemory } from './promote.ts'

const origin = {
  how: 'Frozen',
  generation: 7,
  bytes: 1,
  ...{ moves: false, restores: false },
  takenAt: 10_000,
  takenAtSource: Date.parse('2026-01-01T00:00:00Z'),
} as const
const pod = makeCandidate('h0', 'hotbackup', { stage: stage({ understudy: true }) })
const action: Promote = {
  ...{ type: 'promote', pod, lease: makeLease(pod), version: '1', origin, wake: false },
  role: { slot: 0, epoch: 2, replaces: undefined },
}

it('tells the age of the memory that was brought back, not of the one in an old report', () => {
  const { origin: told } = withMemory(action, { generation: 9, takenAt: '2026-01-01T00:00:02.5Z' })
  expect(told).toEqual({ ...origin, generation: 9, takenAt: 12_500 })
})

it('keeps to the report where the agent does not say', () => {
  expect(withMemory(action, undefined)).toBe(action)
  const nothing = { ...action, origin: undefined }
  expect(withMemory(nothing, { generation: 1, takenAt: '2026-01-01T00:00:00Z' })).toBe(nothing)
})

it('D7.patience: who is called has time for what has still to be moved and brought back, whatever its size', () => {
  const bytes = 64_000_000_000
  const of = (moves: boolean, restores: boolean, wake = false) =>
    patienceMs({ origin: { ...origin, bytes, moves, restores }, wake })
  // A thaw takes as long for 64 GB as for 64 KB.
  expect(of(false, false)).toBe(10_000)
  expect(of(false, true)).toBe(10_000 + 640_000)
  expect(of(true, true)).toBe(10_000 + 30_000 + 1_280_000)
  // Its containers must start first; data already on its node need not be transferred.
  expect(of(false, true, true)).toBe(10_000 + 30_000 + 640_000)
  expect(patienceMs({ origin: undefined, wake: false })).toBe(40_000)
})
