import { describe, expect, test } from 'vitest'
import { createProgress } from '../terminal/progress.ts'
import { failureLines } from './failure.ts'
import { hasColours, oneLine, painter, printable, printableProgress } from './terminal.ts'

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

describe('D19.colours', () => {
  test.each([
    ['auto', {}, true, true],
    ['auto', {}, false, false],
    ['auto', { TERM: 'dumb' }, true, false],
    ['auto', { NO_COLOR: '1', FORCE_COLOR: '1' }, true, false],
    // An empty one counts as absent: no-color.org.
    ['auto', { NO_COLOR: '' }, true, true],
    ['auto', { FORCE_COLOR: '1' }, false, true],
    ['auto', { FORCE_COLOR: '0' }, true, false],
    ['always', { NO_COLOR: '1' }, false, true],
    ['never', { FORCE_COLOR: '1' }, true, false],
  ] as const)('%s with %j on a terminal: %s', (choice, env, isTerminal, expected) => {
    expect(hasColours(choice, env, isTerminal)).toBe(expected)
  })
})

test('D10.terminal: a message of others takes one line of a bounded length', () => {
  expect(oneLine('broken\n✓ all is well\u2028really')).toBe('broken ✓ all is well really')
  expect(oneLine('x'.repeat(1_000_000)).length).toBeLessThan(3_000)
})

test('D10.terminal: a failure is one line, some facts, and one arrow', () => {
  const details = Array.from({ length: 60 }, (_, index) => `node n${index}:\nerror: \u001b[2J`)
  const lines = failureLines({ message: 'late\n  → rm -rf', details, advice: 'wait\nfor it', exitCode: 4 })
  expect(lines[0]).toBe('error: late → rm -rf')
  expect(lines.slice(-2)).toEqual(['  and 10 more', '  → wait for it'])
  expect(lines).toHaveLength(53)
})
