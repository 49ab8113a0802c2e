import { expect, it } from 'vitest'
import { type Promote, withMemory } from './promote.ts'

const origin = {
  how: 'Frozen',
  generation: 7,
  bytes: 1,
  takenAt: 10_000,
  takenAtSource: Date.parse('2026-01-01T00:00:00Z'),
} as const
const action = { type: 'promote', origin } as Promote

it('tells the age of the memory that was brought back, not of the one in an old report', () => {
  const { origin: told } = withMemory(action, { generation: 9, takenAt: '2026-01-01T00:00:02.5Z' })
  expect(told).toEqual({ ...origin, generation: 9, takenAt: 12_500 })
})

it('keeps to the report where the agent does not say', () => {
  expect(withMemory(action, undefined)).toBe(action)
  const nothing = { ...action, origin: undefined }
  expect(withMemory(nothing, { generation: 1, takenAt: '2026-01-01T00:00:00Z' })).toBe(nothing)
})
