import { isDeepStrictEqual } from 'node:util'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { isEqual } from './equal.ts'

const value = fc.jsonValue({ maxDepth: 3 })

it('two values of JSON are the same where node says so', () => {
  fc.assert(
    fc.property(value, value, (a, b) => {
      expect(isEqual(a, b)).toBe(isDeepStrictEqual(a, b))
      expect(isEqual(a, structuredClone(a))).toBe(true)
    }),
  )
})

it.each([
  [{ a: 1 }, { a: 1, b: undefined }],
  [{ a: undefined }, { b: undefined }],
  [
    { a: 1, b: 2 },
    { a: 1, c: 2 },
  ],
  [[1, 2], [1]],
  [[1], { 0: 1 }],
  [{ 0: 1 }, [1]],
  [{}, null],
  [0, '0'],
  [{ a: { b: [1, { c: 1 }] } }, { a: { b: [1, { c: 2 }] } }],
])('%j and %j are not the same', (a, b) => {
  expect(isEqual(a, b)).toBe(false)
  expect(isEqual(a, b)).toBe(isDeepStrictEqual(a, b))
})

it('the order of fields says nothing', () => {
  expect(isEqual({ a: 1, b: { c: 2, d: 3 } }, { b: { d: 3, c: 2 }, a: 1 })).toBe(true)
})
