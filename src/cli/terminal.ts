import { styleText } from 'node:util'

/** Where a command writes. Tests put strings in its place. */
export interface Terminal {
  /** A line, or several, of the result. */
  out(text: string): void
  /** A line for the person who waits, beside the result. */
  err(text: string): void
  /** Shows `text` in place of everything that was shown before; below it where nothing can be replaced. */
  redraw(text: string): void
  readonly colour: boolean
}

export function processTerminal(): Terminal {
  const isScreen = process.stdout.isTTY === true
  // `kubectl understudy status | head -1` closes the pipe early: that is not a failure.
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error
    process.exit(0)
  })
  return {
    out: text => void process.stdout.write(`${text}\n`),
    err: text => void process.stderr.write(`${text}\n`),
    redraw: text => void process.stdout.write(isScreen ? `\x1b[H\x1b[2J\x1b[3J${text}\n` : `${text}\n\n`),
    colour: isScreen && process.env['NO_COLOR'] === undefined,
  }
}

type Style = 'green' | 'red' | 'yellow' | 'dim' | 'bold'

/** Paints where there are colours. */
export type Paint = (style: Style, text: string) => string

export const painter =
  (colour: boolean): Paint =>
  (style, text) =>
    colour && text !== '' ? styleText(style, text, { validateStream: false }) : text
