import { describe, expect, it } from 'vitest'
import type { GoRequest } from '../../api/grant.ts'
import { formatGo, goAnswerOf, parseGo, statusOfGo } from './protocol.ts'

const request: GoRequest = {
  slot: { namespace: 'shop', name: 'web-0', incarnation: '0a1b2c3d' },
  ...{ epoch: 4, number: 7, uid: '01234567-89ab-cdef-0123-456789abcdef' },
}

describe('the use of a grant on the wire', () => {
  it.each([
    [
      'with the least memory',
      { ...request, atLeast: { epoch: 4, generation: 12, takenAt: 1_700_000_000_000 } },
    ],
    ['without it', request],
  ])('is read as it was written: %s', (_, written) => {
    expect(parseGo(formatGo(written))).toEqual(written)
  })

  it.each([
    '/v1/go/shop.web.0.0a1b2c3d',
    '/v1/go/shop.web.0.0a1b2c3d?epoch=4&number=7&uid=a/b&least=none',
    '/v1/go/shop.web.0.0a1b2c3d?epoch=-4&number=7&uid=a&least=none',
    '/v1/go/shop.web.0.0a1b2c3d?epoch=4&number=7&uid=a&least=4.12@x',
    '/v1/go/../x?epoch=4&number=7&uid=a&least=none',
    '/v1/generations/shop.web.0.0a1b2c3d?after=none&base=none',
  ])('anything else is refused: %s', path => {
    expect(parseGo(path)).toBeUndefined()
  })

  it('has one status for each answer, and no answer for another status', () => {
    for (const answer of ['Accepted', 'Refused', 'Later'] as const)
      expect(goAnswerOf(statusOfGo(answer))).toBe(answer)
    expect(goAnswerOf(405)).toBeUndefined()
  })
})
