import { expect, it } from 'vitest'
import { createMemo } from './memo.ts'

it('computes once for each object, be the answer undefined', () => {
  const asked: object[] = []
  const memo = createMemo((of: { readonly name?: string }) => {
    asked.push(of)
    return of.name
  })
  const [a, b] = [{ name: 'a' }, {}]
  expect([memo(a), memo(b), memo(a), memo(b)]).toEqual(['a', undefined, 'a', undefined])
  expect(asked).toEqual([a, b])
})
