import fc from 'fast-check'
import { describe, expect, it, test } from 'vitest'
import type { Part } from './delta/plan.ts'
import { rangesOf, runsOf } from './digest-compared.ts'

describe('D7.digests: the runs of pages that a comparison has told', () => {
  it('cover all pages in order, and say of none that it is the same if it has changed', () => {
    const page = fc.tuple(fc.constantFrom(0, 1), fc.integer({ min: 1, max: 40 }))
    fc.assert(
      fc.property(fc.array(page, { maxLength: 30 }), pieces => {
        const same = Buffer.from(pieces.flatMap(([byte, count]) => Array<number>(count).fill(byte)))
        let at = 0
        for (const { from, to, isSame } of runsOf(same)) {
          expect([from, to > from]).toEqual([at, true])
          if (isSame) expect(new Set(same.subarray(from, to))).toEqual(new Set([1]))
          at = to
        }
        expect(at).toBe(same.length)
      }),
    )
  })

  it('do not return to the file for a few pages between two that have changed', () => {
    const told = (...pieces: readonly (readonly [byte: number, count: number])[]) =>
      [...runsOf(Buffer.concat(pieces.map(([byte, count]) => Buffer.alloc(count, byte))))].map(
        ({ from, to, isSame }) => `${from}-${to}${isSame ? '' : ' changed'}`,
      )
    expect(told([0, 1], [1, 15], [0, 1])).toEqual(['0-17 changed'])
    expect(told([0, 1], [1, 16], [0, 1])).toEqual(['0-1 changed', '1-17', '17-18 changed'])
    expect(told([1, 2], [0, 1], [1, 3])).toEqual(['0-2', '2-6 changed'])
    expect(told([1, 40_000])).toEqual(['0-32768', '32768-40000'])
    expect(told()).toEqual([])
  })
})

test('D7.digests: only whole pages are compared, of one file whose digests are known, and not too many pieces', () => {
  const digests = new Map([
    [3, Buffer.alloc(0)],
    [4, Buffer.alloc(0)],
  ])
  const part = (pages: number, file?: number, offset = 0): Part => ({
    length: pages * 4096,
    ...(file !== undefined && { like: { file, offset: offset * 4096 } }),
  })
  const ranges = (...parts: readonly Part[]) =>
    rangesOf(parts, digests)?.ranges.map(({ first, second, length }) =>
      [first, second, length].map(it => it / 4096),
    )
  expect(ranges(part(2), part(3, 3, 7), part(1, 4), part(1, 9), part(5, 3))).toEqual([
    [2, 7, 3],
    [7, 0, 5],
  ])
  expect(ranges(part(0.5), part(3, 3))).toBeUndefined()
  expect(ranges(part(0.5, 3), part(0.5, 3, 0.5))).toBeUndefined()
  expect(ranges(part(1), part(1, 9))).toBeUndefined()
  const many = (count: number) => Array.from({ length: count }, (_, index) => part(1, 3, 2 * index))
  expect(ranges(...many(16_384))).toHaveLength(16_384)
  expect(ranges(...many(16_385))).toBeUndefined()
})
