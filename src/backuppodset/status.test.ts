import { expect, it } from 'vitest'
import { refusedStatus } from './status.ts'

it('a refused set makes no progress, whatever it did before', () => {
  const progressing = {
    type: 'Progressing',
    status: 'True',
    reason: 'Converging',
    message: '',
    lastTransitionTime: '2026-01-01T00:00:00Z',
    observedGeneration: 1,
  } as const
  const refusal = { code: 'ImageMissing', message: 'give every container an image' }
  const { conditions } = refusedStatus(2, { conditions: [progressing] }, refusal, 0)
  expect(conditions?.map(({ type, status, reason }) => [type, status, reason])).toEqual([
    ['Progressing', 'False', 'ImageMissing'],
    ['Ready', 'False', 'ImageMissing'],
    ['Degraded', 'True', 'ImageMissing'],
  ])
})
