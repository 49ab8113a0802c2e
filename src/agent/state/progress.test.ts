import { expect, it } from 'vitest'
import { createProgress } from './progress.ts'

it('D3.stands-still: that a primary stands still is said until it does no more, whatever else is tried with its memory', () => {
  const progress = createProgress(() => {})
  progress.succeeded('s', { intervalSeconds: 5 })
  progress.standing('s', { seconds: 13, stoodSeconds: 1, handover: 2 })
  // As after a trial in an understudy on the same node.
  progress.succeeded('s')
  expect(progress.get('s')).toEqual({
    intervalSeconds: 5,
    standsForSeconds: 13,
    stoodForSeconds: 1,
    standsForHandover: 2,
  })
  progress.failed('s', 'RestoreFailed', 'torn')
  expect(progress.get('s')).toMatchObject({
    standsForSeconds: 13,
    stoodForSeconds: 1,
    standsForHandover: 2,
    reason: 'RestoreFailed',
  })
  progress.standing('s', undefined)
  expect(progress.get('s')).toEqual({ intervalSeconds: 5 })
})
