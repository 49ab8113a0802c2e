import { expect, test } from 'vitest'
import { distance, suggestion } from './find-set.ts'

const sets = [
  { namespace: 'shop', name: 'web' },
  { namespace: 'shop', name: 'redis' },
  { namespace: 'bank', name: 'ledger' },
]

test.each([
  ['wbe', 'shop', 'did you mean web?'],
  ['rediss', 'shop', 'did you mean redis?'],
  ['ledger', 'shop', 'use -n bank: it is in another namespace'],
  ['something-else', 'shop', 'choose one of: web, redis'],
  ['web', 'empty', 'use -n shop: it is in another namespace'],
  ['other', 'empty', 'list all sets with `kubectl understudy status -A`: this namespace has none'],
])('who asks for %s in %s is told: %s', (name, namespace, text) => {
  expect(suggestion(name, namespace, sets)).toBe(text)
})

test('where there are no sets at all it says where to begin', () => {
  expect(suggestion('web', 'shop', [])).toContain('samples/')
})

test('distance counts letters that differ', () => {
  expect([distance('', 'abc'), distance('web', 'web'), distance('kitten', 'sitting')]).toEqual([3, 0, 3])
})
