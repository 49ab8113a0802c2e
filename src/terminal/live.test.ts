import { stripVTControlCharacters } from 'node:util'
import { expect, test } from 'vitest'
import { cut, openLive } from './live.ts'

function terminal(isTTY: boolean) {
  const written: string[] = []
  return { written, output: { isTTY, columns: 40, rows: 5, write: (text: string) => written.push(text) } }
}

test('without a terminal only lines that stay are written, and the last frame once', () => {
  const { written, output } = terminal(false)
  let count = 0
  {
    using live = openLive(output, () => [`frame ${++count}`])
    live.log('something happened')
  }
  expect(written).toEqual(['something happened\n', 'frame 1\n'])
})

test('on a terminal a frame replaces the one before it, and lines go above', () => {
  const { written, output } = terminal(true)
  {
    using live = openLive(output, () => ['a', 'b'])
    live.log('told')
  }
  expect(written.join('')).toBe('\r\u001b[Ja\nb\n\u001b[2A\r\u001b[Jtold\na\nb\n\u001b[2A\r\u001b[Ja\nb\n')
})

test('a long line is cut to the width, its colours are not', () => {
  const line = cut('\u001b[31mabcdefghij\u001b[39m', 6)
  expect(stripVTControlCharacters(line)).toBe('abcde')
  expect(line.endsWith('\u001b[39m')).toBe(true)
})

test('more lines than the terminal has rows are counted, because the cursor cannot return to them', () => {
  const { written, output } = terminal(true)
  {
    using _ = openLive(output, () => ['a', 'b', 'c', 'd', 'e', 'f'])
  }
  expect(written[0]).toBe('\r\u001b[Ja\nb\nc\n(3 more)\n')
  // Nothing is drawn over the last frame.
  expect(written[1]).toBe('\u001b[4A\r\u001b[Ja\nb\nc\nd\ne\nf\n')
})
