import { expect, it } from 'vitest'
import { createToldCopies } from './told-copies.ts'

it('a Lease that names a node as a precaution, and takes that back before there is a copy, has told of none', () => {
  const copies = createToldCopies()
  copies.write('life', 10, { names: true, isThere: false })
  expect(copies.since('life')).toBe(10)
  copies.write('life', 20, { names: false, isThere: false })
  expect(copies.since('life')).toBeUndefined()
  copies.write('life', 30, { names: true, isThere: true })
  expect(copies.since('life')).toBe(30)
})

it('a Lease that stops naming nodes while a machine has a copy forgets what it has told', () => {
  const copies = createToldCopies()
  copies.write('life', 10, { names: true, isThere: false })
  copies.write('life', 20, { names: false, isThere: true })
  expect(copies.since('life')).toBe(10)
})

it('no Lease takes back what a report has said, and none speaks for another life', () => {
  const copies = createToldCopies()
  copies.write('life', 10, { names: true, isThere: false })
  copies.tell('life', 20)
  copies.write('other', 30, { names: false, isThere: false })
  expect(copies.since('life')).toBe(10)
  copies.write('life', 40, { names: false, isThere: false })
  expect(copies.since('life')).toBe(20)
  expect(copies.since('other')).toBeUndefined()
})
