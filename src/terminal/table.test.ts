import { styleText } from 'node:util'
import { expect, test } from 'vitest'
import { table, tableLines } from './table.ts'

test('columns are as wide as their widest cell, colours take no room, empty columns are left out', () => {
  const red = styleText('red', 'no', { validateStream: false })
  expect(red).not.toBe('no')
  const text = table(
    ['NAME', 'READY', 'NOTE', 'AGE'],
    [
      ['web', 'yes', '', '5m'],
      ['a-long-name', red, '', '1h'],
    ],
  )
  expect(text.replaceAll(red, 'no').split('\n')).toEqual([
    'NAME          READY   AGE',
    'web           yes     5m',
    'a-long-name   no      1h',
  ])
})

test('a table without rows is its head', () => {
  expect(table(['A', 'B'], [])).toBe('A   B')
})

test('numbers are aligned to the right, below a rule, and empty columns stay where they are wanted', () => {
  const lines = tableLines(
    ['case', 'n', '', 'unit'],
    [
      ['write', '5', '', 's'],
      ['read', '120', '', 's'],
    ],
    { gap: '  ', right: new Set([1]), keepEmpty: true, rule: true },
  )
  expect(lines).toEqual(['case     n    unit', '-----  ---    ----', 'write    5    s', 'read   120    s'])
})

test('rows that are shorter than the titles end early', () => {
  expect(tableLines(['A', 'B'], [['a'], ['a', 'b']])).toEqual(['A   B', 'a', 'a   b'])
})
