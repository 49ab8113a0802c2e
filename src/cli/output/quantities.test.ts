import { expect, test } from 'vitest'
import { age, ageOf, bytes, duration } from './quantities.ts'

test.each([
  [-3, '0.0s'],
  [0.84, '0.8s'],
  [9.94, '9.9s'],
  [42.4, '42s'],
  [119, '119s'],
  [120, '2m'],
  [7_199, '119m'],
  [7_200, '2h'],
  [172_799, '47h'],
  [172_800, '2d'],
])('an age of %d s is %s', (seconds, text) => {
  expect(age(seconds)).toBe(text)
})

test('the age of no instant is nothing', () => {
  expect([undefined, '', 'soon'].map(it => ageOf(it, 0))).toEqual(['', '', ''])
  expect(ageOf('1970-01-01T00:00:00Z', 30_000)).toBe('30s')
})

test.each([
  [0.0072, '7.2 ms'],
  [0.042, '42 ms'],
  [0.1234, '0.12 s'],
  [2.5, '2.50 s'],
  [61, '61 s'],
])('a duration of %d s is %s', (seconds, text) => {
  expect(duration(seconds)).toBe(text)
})

test.each([
  [0, '0 B'],
  [999, '999 B'],
  [3_140_000, '3.1 MB'],
  [127_000_000, '127 MB'],
  [1_300_000_000, '1.3 GB'],
  [5e15, '5000 TB'],
])('%d bytes are %s', (count, text) => {
  expect(bytes(count)).toBe(text)
})
