import { stripVTControlCharacters } from 'node:util'
import { expect, test } from 'vitest'
import { createScreen, cut, table } from './screen.ts'

function terminal(isTTY: boolean) {
  const written: string[] = []
  return { written, output: { isTTY, columns: 40, write: (text: string) => written.push(text) } }
}

test('without a terminal only lines that stay are written, and the last frame once', () => {
  const { written, output } = terminal(false)
  let count = 0
  {
    using live = createScreen(output).live(() => [`frame ${++count}`])
    live.log('something happened')
  }
  expect(written).toEqual(['something happened\n', 'frame 1\n'])
})

test('on a terminal a frame replaces the one before it, and lines go above', () => {
  const { written, output } = terminal(true)
  {
    using live = createScreen(output).live(() => ['a', 'b'])
    live.log('told')
  }
  expect(written.join('')).toBe('\r\u001b[Ja\nb\n\u001b[2A\r\u001b[Jtold\na\nb\n\u001b[2A\r\u001b[Ja\nb\n')
})

test('a long line is cut to the width, its colours are not', () => {
  const line = cut('\u001b[31mabcdefghij\u001b[39m', 6)
  expect(stripVTControlCharacters(line)).toBe('abcde')
  expect(line.endsWith('\u001b[39m')).toBe(true)
})

test('columns are as wide as their widest cell', () => {
  const row = {
    uid: 'u',
    epoch: '1',
    ip: undefined,
    ready: '1/1',
    status: 'Running',
    restarts: 0,
    inPlace: true,
    leaving: false,
  }
  const lines = table([
    { ...row, name: 'web-1', kind: 'primary', slot: '0', node: 'n1' },
    { ...row, name: 'web-22', kind: 'hotbackup', slot: '', node: 'node-2' },
  ]).map(stripVTControlCharacters)
  expect(lines).toEqual([
    '  NAME    TYPE       SLOT  NODE    READY  STATUS   RESTARTS',
    '  web-1   primary    0     n1      1/1    Running  0',
    '  web-22  hotbackup        node-2  1/1    Running  0',
  ])
})
