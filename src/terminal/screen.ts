/** A picture that is drawn again and again, on a screen of its own. */
import { cut, type Output } from './live.ts'

/** An output that may change its size. */
export interface ResizableOutput extends Output {
  on?(event: 'resize', listener: () => void): unknown
  off?(event: 'resize', listener: () => void): unknown
}

export interface Screen extends Disposable {
  /** Shows a text in place of the one before. */
  draw(text: string): void
}

const escapeCharacter = '\u001b'

/**
 * Takes the alternate screen of a terminal until disposed, so the lines before it and its scrollback stay. The picture is
 * cut to the size of the terminal, because the alternate screen does not scroll back. The last one is then printed whole.
 */
export function openScreen(output: ResizableOutput): Screen {
  let shown = ''
  const paint = () => {
    const lines = fitting(shown, output.columns ?? 80, output.rows ?? 24)
    // One write, so that the terminal never shows half a picture. The last line has no line feed: it would scroll.
    output.write(
      `${escapeCharacter}[H${lines.map(line => `${line}${escapeCharacter}[K`).join('\r\n')}${escapeCharacter}[J`,
    )
  }
  output.write(`${escapeCharacter}[?1049h${escapeCharacter}[?25l`)
  output.on?.('resize', paint)
  return {
    draw(text) {
      shown = text
      paint()
    },
    [Symbol.dispose]() {
      output.off?.('resize', paint)
      output.write(`${escapeCharacter}[?25h${escapeCharacter}[?1049l${shown === '' ? '' : `${shown}\n`}`)
    },
  }
}

/** Returns the lines that a terminal has room for, and the number of those that it has not. */
export function fitting(text: string, columns: number, rows: number): readonly string[] {
  const lines = text.split('\n')
  const room = Math.max(rows, 1)
  const kept =
    lines.length <= room
      ? lines
      : [...lines.slice(0, room - 1), `(${lines.length - room + 1} more lines: the terminal has ${rows})`]
  return kept.map(line => cut(line, columns))
}
