import { expect, it } from 'vitest'
import { createToldCopies } from './told-copies.ts'

it('a Lease that names a node as a precaution, and takes that back before there is a copy, has told of none', () => {
  const copies = createToldCopies()
  copies.write('life', 10, { names: ['n1'], having: [] })
  expect(copies.since('life')).toBe(10)
  copies.write('life', 20, { names: [], having: [] })
  expect(copies.since('life')).toBeUndefined()
  copies.write('life', 30, { names: ['n1'], having: ['n1'] })
  expect(copies.since('life')).toBe(30)
})

it('a Lease that stops naming nodes while one of them has a copy forgets what it has told', () => {
  const copies = createToldCopies()
  copies.write('life', 10, { names: ['n1'], having: [] })
  copies.write('life', 20, { names: [], having: ['n1'] })
  expect(copies.since('life')).toBe(10)
})

it('the source, which no Lease has named, may have saved for the first time meanwhile', () => {
  const copies = createToldCopies()
  copies.write('life', 10, { names: ['n1'], having: [] })
  copies.write('life', 20, { names: ['n2'], having: ['n0'] })
  copies.write('life', 30, { names: [], having: ['n0'] })
  expect(copies.since('life')).toBeUndefined()
  copies.write('life', 40, { names: ['n1'], having: [] })
  copies.write('life', 50, { names: ['n2'], having: ['n1'] })
  copies.write('life', 60, { names: [], having: ['n1'] })
  expect(copies.since('life')).toBe(40)
})

it('no Lease takes back what a report has said, and none speaks for another life', () => {
  const copies = createToldCopies()
  copies.write('life', 10, { names: ['n1'], having: [] })
  copies.tell('life', 20)
  copies.write('other', 30, { names: [], having: [] })
  expect(copies.since('life')).toBe(10)
  copies.write('life', 40, { names: [], having: [] })
  expect(copies.since('life')).toBe(20)
  expect(copies.since('other')).toBeUndefined()
})
