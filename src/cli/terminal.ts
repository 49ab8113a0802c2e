import { styleText } from 'node:util'
import { createProgress, type Progress } from '../terminal/progress.ts'

/** The output of a command. Tests record it as strings instead. */
export interface Terminal {
  /** Writes a line, or several, of the result. */
  out(text: string): void
  /** Writes a line for the waiting user, beside the result. */
  err(text: string): void
  /** The phases of a command that takes long, for the waiting user. */
  readonly progress: Progress
  /** Shows `text` in place of everything shown before; below it where the output cannot be replaced. */
  redraw(text: string): void
  readonly colour: boolean
}

export function processTerminal(): Terminal {
  const isScreen = process.stdout.isTTY === true
  const display = createProgress(process.stderr)
  // `kubectl understudy status | head -1` closes the pipe early: that is not a failure.
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error
    process.exit(0)
  })
  return {
    out: text => void process.stdout.write(`${printable(text)}\n`),
    err: text => display.log(printable(text)),
    progress: printableProgress(display),
    // Lines that have scrolled away stay: they are not ours.
    redraw: text =>
      void process.stdout.write(isScreen ? `\x1b[H\x1b[2J${printable(text)}\n` : `${printable(text)}\n\n`),
    colour: isScreen && process.env['NO_COLOR'] === undefined,
  }
}

const styles = ['green', 'red', 'yellow', 'dim', 'bold'] as const
type Style = (typeof styles)[number]

/** The escape sequences that the painter writes; no others reach the terminal. */
const ours = new Set(styles.flatMap(style => styleText(style, ' ', { validateStream: false }).split(' ')))

/**
 * Makes a text safe for a terminal. Names, messages and names of processes are chosen by tenants: characters that
 * control a terminal, or change the direction of text, are written as their numbers. Our own colours stay.
 */
export const printable = (text: string): string =>
  text.replace(
    // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for.
    /\x1b\[\d+m|[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu,
    found => (ours.has(found) ? found : [...found].map(escaped).join('')),
  )

const escaped = (character: string): string =>
  /[\x20-\x7e]/.test(character)
    ? character
    : `\\u${(character.codePointAt(0) ?? 0).toString(16).padStart(4, '0')}`

/** A display that shows the texts of steps safely, and each in one line. */
export function printableProgress(display: Progress): Progress {
  const line = (text: string): string => printable(text.replace(/\s+/gu, ' '))
  return {
    step: (title, work) =>
      display.step(line(title), step => work({ detail: text => step.detail(line(text)) })),
  }
}

/** Adds a style if the terminal has colours. */
export type Paint = (style: Style, text: string) => string

export const painter =
  (colour: boolean): Paint =>
  (style, text) =>
    colour && text !== '' ? styleText(style, text, { validateStream: false }) : text
