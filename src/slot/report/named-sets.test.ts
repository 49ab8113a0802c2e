import { expect, it } from 'vitest'
import { createNamedSets } from './named-sets.ts'

const names = (namespace: string, count: number) =>
  Array.from({ length: count }, (_, i) => ({ namespace, name: `s${i}` }))

it('D10.names: a namespace with any number of sets has half of the names that the others leave', () => {
  const named = createNamedSets(100)
  const admittedOf = (namespace: string) => names(namespace, 1_000).filter(set => named.admit(set)).length
  expect(['a', 'b', 'c'].map(admittedOf)).toEqual([50, 25, 12])
  expect(named.unnamed).toBe(3_000 - 87)
  // An admitted set stays admitted, whichever sets come later.
  expect(named.admit({ namespace: 'a', name: 's0' })).toBe(true)
})

it('D10.names: a name that is given back is for the next who asks', () => {
  const named = createNamedSets(4)
  const [first, second, third] = names('a', 3)
  if (!first || !second || !third) throw new Error('three')
  expect([first, second, third].map(named.admit)).toEqual([true, true, false])
  expect(named.unnamed).toBe(1)
  named.forget(first)
  expect(named.admit(third)).toBe(true)
  expect(named.unnamed).toBe(0)
  expect(named.admit(first)).toBe(false)
  named.forget(first)
  expect(named.unnamed).toBe(0)
  named.clear()
  expect(names('a', 3).map(named.admit)).toEqual([true, true, false])
})
