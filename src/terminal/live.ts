/** A region that changes, below lines that stay. */
import { stripVTControlCharacters } from 'node:util'

/** Where a program writes for people: a stream such as `process.stderr`. */
export interface Output {
  readonly isTTY?: boolean | undefined
  readonly columns?: number | undefined
  readonly rows?: number | undefined
  write(text: string): unknown
}

export interface Live extends Disposable {
  /** Prints a line that stays, above the region. */
  log(line: string): void
}

const frameMs = 100

/**
 * Redraws `frame()` until disposed, as far as the terminal has rows. The last frame stays, with all its lines. If the
 * output is not a terminal, prints only the last frame.
 */
export function openLive(output: Output, frame: () => readonly string[]): Live {
  if (output.isTTY !== true)
    return {
      log: line => void output.write(joined([line])),
      [Symbol.dispose]: () => {
        const last = joined(frame())
        if (last !== '') output.write(last)
      },
    }
  let shown = 0
  const draw = (above: readonly string[] = [], most = rowsOf(output)) => {
    // A line that wraps would take two rows, and the next frame would begin in the wrong row.
    const lines = shortened(frame(), most).map(line => cut(line, output.columns ?? 80))
    const up = shown > 0 ? `\u001b[${shown}A` : ''
    // One write, so that the terminal never shows half a frame.
    output.write(`${up}\r\u001b[J${joined([...above, ...lines])}`)
    shown = lines.length
  }
  const timer = setInterval(() => draw(), frameMs)
  draw()
  return {
    log: line => draw([line]),
    [Symbol.dispose]: () => {
      clearInterval(timer)
      draw([], Number.POSITIVE_INFINITY)
    },
  }
}

const joined = (lines: readonly string[]): string => lines.map(line => `${line}\n`).join('')

/** The cursor can return over this many lines: it cannot reach rows that have scrolled away. */
const rowsOf = ({ rows = 24 }: Output): number => Math.max(rows - 1, 1)

const shortened = (lines: readonly string[], most: number): readonly string[] =>
  lines.length > most ? [...lines.slice(0, most - 1), `(${lines.length - most + 1} more)`] : lines

const escapeCharacter = '\u001b'
const colour = new RegExp(`(${escapeCharacter}\\[[0-9;]*m)`)

/** Cuts a line to the width of the terminal without splitting an escape sequence. */
export function cut(line: string, width: number): string {
  if (stripVTControlCharacters(line).length < width) return line
  let room = width - 1
  let result = ''
  for (const part of line.split(colour)) {
    if (part.startsWith(escapeCharacter)) result += part
    else {
      result += part.slice(0, room)
      room -= Math.min(room, part.length)
    }
  }
  return result
}
