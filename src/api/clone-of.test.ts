import { describe, expect, it } from 'vitest'
import { formatCloneOf, parseCloneOf } from './clone-of.ts'

const cloneOf = { name: 'web-0', incarnation: '0a1b2c3d', epoch: 2, generation: 7, node: 'a' }

describe('the memory that a new slot copies', () => {
  it('is read as it was written', () => {
    expect(parseCloneOf(formatCloneOf(cloneOf))).toEqual(cloneOf)
  })

  it.each([
    undefined,
    '',
    'x',
    '{}',
    ...(['name', 'incarnation', 'node'] as const).map(key => JSON.stringify({ ...cloneOf, [key]: '' })),
    ...(['epoch', 'generation'] as const).map(key => JSON.stringify({ ...cloneOf, [key]: -1 })),
    JSON.stringify({ ...cloneOf, generation: '7' }),
    JSON.stringify({ ...cloneOf, more: 'x'.repeat(1_024) }),
  ])('is none if it cannot be read: %s', text => {
    expect(parseCloneOf(text)).toBeUndefined()
  })
})
