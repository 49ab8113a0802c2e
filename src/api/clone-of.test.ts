import { describe, expect, it } from 'vitest'
import { cloneHolder, formatCloneOf, isOfSource, isUnserved, parseCloneOf } from './clone-of.ts'

const cloneOf = { name: 'web-0', incarnation: '0a1b2c3d', epoch: 2, generation: 7, node: 'a' }

describe('the memory that a new slot copies', () => {
  it('is read as it was written', () => {
    for (const each of [cloneOf, { ...cloneOf, served: true as const }])
      expect(parseCloneOf(formatCloneOf(each), 'shop')).toEqual(each)
  })

  it.each([
    undefined,
    '',
    'x',
    '{}',
    ...(['name', 'incarnation', 'node'] as const).map(key => JSON.stringify({ ...cloneOf, [key]: '' })),
    ...(['epoch', 'generation'] as const).map(key => JSON.stringify({ ...cloneOf, [key]: -1 })),
    JSON.stringify({ ...cloneOf, generation: '7' }),
    // No slot can have them: text built from them would throw.
    JSON.stringify({ ...cloneOf, name: 'Web_0' }),
    JSON.stringify({ ...cloneOf, incarnation: '1' }),
    JSON.stringify({ ...cloneOf, more: 'x'.repeat(1_024) }),
  ])('is none if it cannot be read: %s', text => {
    expect(parseCloneOf(text, 'shop')).toBeUndefined()
  })

  it('is all that a slot has until a primary has served, also if it cannot be read any more', () => {
    const pod = { uid: 'p' }
    expect(isUnserved({ cloneOf })).toBe(true)
    expect(isUnserved({ cloneOf: { ...cloneOf, served: true } })).toBe(false)
    expect(isUnserved({})).toBe(false)
    expect(isOfSource({ holder: pod, cloneOf: { ...cloneOf, served: true } })).toBe(true)
    expect(isOfSource({ holder: { uid: cloneHolder('p') } })).toBe(true)
    expect(isOfSource({ holder: pod })).toBe(false)
  })
})
