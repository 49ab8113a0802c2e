import { describe, expect, test, vi } from 'vitest'
import { createProgress } from '../terminal/progress.ts'
import { painter, printable, printableProgress, processTerminal } from './terminal.ts'

describe('D10.terminal: what tenants write', () => {
  test.each([
    ['a title for the window', '\x1b]0;root\x07 name', '\\u001b]0;root\\u0007 name'],
    ['a screen that is wiped', 'ok\x1b[2J\x1b[H', 'ok\\u001b[2J\\u001b[H'],
    ['a line that is written over', 'broken\rok', 'broken\\u000dok'],
    ['words that cannot be seen', '\x1b[8mhidden', '\\u001b[8mhidden'],
    ['escapes of eight bits', '\x9b31m', '\\u009b31m'],
    ['words that are read backwards', 'a\u202eb', 'a\\u202eb'],
  ])('is shown and not obeyed: %s', (_, text, shown) => {
    expect(printable(text)).toBe(shown)
  })
})

test('D10.terminal: phases show what tenants write, each in one line', async () => {
  const written: string[] = []
  const display = createProgress({ write: text => written.push(text) })
  await printableProgress(display).step('save \x1b[2J', async step => step.detail('a\nb \x1b[1A'))
  expect(written.join('')).toMatch(/^ok {2}save \\u001b\[2J .* s {2}a b \\u001b\[1A\n$/)
})

test('our own colours, lines and tabs stay', () => {
  const text = `${painter(true)('red', '✗')}\tname\n${painter(true)('bold', 'next')} → ünïcode`
  expect(printable(text)).toBe(text)
})

test('what has scrolled away stays: a view that follows takes the screen and nothing above it', () => {
  const written: string[] = []
  const { stdout } = process
  const write = vi.spyOn(stdout, 'write').mockImplementation(text => {
    written.push(String(text))
    return true
  })
  const isTTY = Object.getOwnPropertyDescriptor(stdout, 'isTTY')
  Object.defineProperty(stdout, 'isTTY', { value: true, configurable: true })
  try {
    processTerminal().redraw('two sets')
  } finally {
    write.mockRestore()
    if (isTTY) Object.defineProperty(stdout, 'isTTY', isTTY)
    else Reflect.deleteProperty(stdout, 'isTTY')
  }
  expect(written.join('')).toContain('two sets')
  expect(written.join('')).not.toContain('\x1b[3J')
})
