import { expect, it } from 'vitest'
import { adviceOn } from './checkpoint.ts'

it('a checkpoint that is late is told with what keeps it from being taken', () => {
  expect(adviceOn(undefined)).toMatch(/log of the agents/)
  expect(adviceOn({ reason: 'StoreFull', message: 'raise the budget' })).toBe('StoreFull: raise the budget')
  expect(adviceOn({ intervalReason: 'FreezeBudget', intervalSeconds: 90 })).toMatch(
    /^FreezeBudget: .* after 90 s: raise checkpoint\.maxFreezePercent/,
  )
  expect(adviceOn({ intervalReason: 'Busy', intervalSeconds: 4 })).toMatch(/log of the agents/)
})
