import { expect, test } from 'vitest'
import { peer } from '../testing/fake/snapshots.ts'
import { areAllOf } from './agents-version.ts'

test('D7.digests: an agent of another version on any node is noticed', () => {
  const reports = [{ status: peer('a', { version: '2' }) }, {}]
  expect(areAllOf('2', reports)).toBe(true)
  expect(areAllOf('2', [...reports, { status: peer('b', { version: '1' }) }])).toBe(false)
  expect(areAllOf('3', reports)).toBe(false)
})
