import { describe, expect, test } from 'vitest'
import { painter } from '../terminal.ts'
import { isAbout, rendered } from './line.ts'
import { byTime, linesOf } from './sources.ts'

describe('D19.logs: lines of several logs', () => {
  test('are in the order of their times, whatever number of digits these have', () => {
    const lines = [
      ...linesOf('a', '2030-01-01T00:00:01.5Z later\n2030-01-01T00:00:00Z first\ncut off'),
      ...linesOf('b', '2030-01-01T00:00:01.12Z middle\n'),
    ]
    expect([...lines].sort(byTime).map(({ text }) => text)).toEqual(['first', 'middle', 'later'])
  })

  test.each([
    [{ namespace: 'shop', name: 'web' }, true],
    [{ namespace: 'other', name: 'web' }, false],
    [{ slot: 'shop/web-0' }, true],
    [{ pod: 'web-0123456789ab' }, true],
    [{ set: 'shop/website' }, false],
    [{ set: 'other/web' }, false],
    [{ level: 'error', msg: 'the API server is away' }, true],
    [{ level: 'info', msg: 'started' }, false],
    [undefined, true],
  ])('%j is about the set: %s', (fields, expected) => {
    expect(isAbout(fields, 'shop', 'web')).toBe(expected)
  })

  test('show message and fields in one line', () => {
    const text = JSON.stringify({
      level: 'warn',
      msg: 'cannot\nsave',
      slot: 'shop/web-0',
      err: { message: 'full' },
      pid: 1,
    })
    expect(rendered({ at: '2030-01-01T00:00:01.123456789Z', pod: 'agent-x', text }, painter(false))).toBe(
      '2030-01-01T00:00:01.123 agent-x  warn  cannot save slot=shop/web-0 err=full',
    )
    expect(
      rendered({ at: '2030-01-01T00:00:01.123456789Z', pod: 'a', text: '{broken' }, painter(false)),
    ).toBe('2030-01-01T00:00:01.123 a  {broken')
  })
})
