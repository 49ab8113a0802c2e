import { EventEmitter } from 'node:events'
import { describe, expect, test } from 'vitest'
import { fitting, openScreen } from './screen.ts'

const escapeCharacter = '\u001b'

function terminal(columns = 40, rows = 4) {
  const written: string[] = []
  const events = new EventEmitter()
  return {
    written,
    events,
    output: {
      ...{ isTTY: true, columns, rows, write: (text: string) => written.push(text) },
      on: (event: 'resize', listener: () => void) => events.on(event, listener),
      off: (event: 'resize', listener: () => void) => events.off(event, listener),
    },
  }
}

describe('D19.scrollback: a picture that is followed', () => {
  test('is on a screen of its own, and leaves lines and scrollback as they were', () => {
    const { written, output } = terminal()
    {
      using screen = openScreen(output)
      screen.draw('one')
      screen.draw('two')
    }
    expect(written).toEqual([
      `${escapeCharacter}[?1049h${escapeCharacter}[?25l`,
      `${escapeCharacter}[Hone${escapeCharacter}[K${escapeCharacter}[J`,
      `${escapeCharacter}[Htwo${escapeCharacter}[K${escapeCharacter}[J`,
      // The last picture stays readable.
      `${escapeCharacter}[?25h${escapeCharacter}[?1049ltwo\n`,
    ])
    expect(written.join('')).not.toMatch(/\[[23]J/)
  })

  test('is drawn again when the terminal gets another size, and not after its end', () => {
    const { written, output, events } = terminal()
    {
      using screen = openScreen(output)
      screen.draw('a\nb')
      output.rows = 1
      events.emit('resize')
    }
    expect(written[2]).toBe(
      `${escapeCharacter}[H(2 more lines: the terminal has 1)${escapeCharacter}[K${escapeCharacter}[J`,
    )
    const before = written.length
    events.emit('resize')
    expect(written).toHaveLength(before)
  })

  test('fits into 40 columns and a few rows', () => {
    const text = ['a'.repeat(100), 'b', 'c', 'd', 'e'].join('\n')
    expect(fitting(text, 40, 4)).toEqual(['a'.repeat(39), 'b', 'c', '(2 more lines: the terminal has 4)'])
    expect(fitting('a\nb', 40, 2)).toEqual(['a', 'b'])
  })
})
