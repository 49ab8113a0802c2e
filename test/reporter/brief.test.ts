import { expect, test } from 'vitest'
import { brief } from './brief.ts'

const lines = (count: number) => Array.from({ length: count }, (_, index) => `line ${index}`).join('\n')

test('a short message is displayed whole', () => {
  expect(brief(`${lines(10)}\n`)).toBe(lines(10).replaceAll('\n', '\n  '))
})

test('of a long message the beginning and the end are displayed', () => {
  const shown = brief(lines(100)).split('\n  ')
  expect(shown).toEqual([
    ...['line 0', 'line 1', 'line 2', '… 91 lines …'],
    ...[94, 95, 96, 97, 98, 99].map(index => `line ${index}`),
  ])
})

test('a long line is cut', () => {
  expect(brief('x'.repeat(10_000))).toBe(`${'x'.repeat(500)} …`)
})
