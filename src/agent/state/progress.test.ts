import { expect, it } from 'vitest'
import { createProgress } from './progress.ts'

it('D3.stands-still: that a primary stands still is said until it does no more, whatever else is tried with its memory', () => {
  const progress = createProgress(() => {})
  progress.succeeded('s', { intervalSeconds: 5 })
  const standing = { seconds: 13, stoodSeconds: 1, handover: 2 }
  progress.standing('s', standing)
  // As after a trial in an understudy on the same node.
  progress.succeeded('s')
  expect(progress.get('s')).toEqual({ intervalSeconds: 5, standing })
  progress.failed('s', 'RestoreFailed', 'torn')
  expect(progress.get('s')).toMatchObject({ standing, reason: 'RestoreFailed' })
  progress.standing('s', undefined)
  expect(progress.get('s')).toEqual({ intervalSeconds: 5 })
})
