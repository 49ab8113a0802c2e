import { styleText } from 'node:util'
import { createProgress, type Progress, type ProgressDisplay } from '../terminal/progress.ts'
import { openScreen, type Screen } from '../terminal/screen.ts'

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
  /** Decides on colours, before the first output. */
  choose(colour: ColourChoice): void
  /** Ends the output of a command. */
  close(): void
}

export const colourChoices = ['auto', 'always', 'never'] as const
export type ColourChoice = (typeof colourChoices)[number]

/** The most lines that are kept for the time after a screen, because the screen hides them. */
const mostNotes = 20

export function processTerminal(env: NodeJS.ProcessEnv = process.env): Terminal {
  const { stdout, stderr } = process
  let choice: ColourChoice = 'auto'
  let opened: ProgressDisplay | undefined
  let screen: Screen | undefined
  let notes: string[] = []
  const display = (): ProgressDisplay => {
    opened ??= createProgress(stderr, { colour: hasColours(choice, env, stderr.isTTY) })
    return opened
  }
  const whenClosed = (act: () => void) => (error: NodeJS.ErrnoException) => {
    // Windows says EOF.
    if (error.code !== 'EPIPE' && error.code !== 'EOF') throw error
    act()
  }
  // `kubectl understudy status | head -1` closes the pipe early: that is not a failure.
  stdout.on(
    'error',
    whenClosed(() => process.exit(0)),
  )
  // A command that changes something continues, although its progress is not read.
  stderr.on(
    'error',
    whenClosed(() => undefined),
  )
  const close = () => {
    screen?.[Symbol.dispose]()
    screen = undefined
    for (const note of notes) display().log(note)
    notes = []
  }
  // After an uncaught exception, the terminal must not stay on the other screen.
  process.once('exit', close)
  return {
    out: text => void stdout.write(`${printable(text)}\n`),
    err: text => {
      if (screen === undefined) display().log(printable(text))
      else notes = [...notes, printable(text)].slice(-mostNotes)
    },
    progress: printableProgress({
      step: (title, work) => display().step(title, work),
      wait: (title, work) => display().wait(title, work),
    }),
    redraw(text) {
      if (stdout.isTTY !== true) {
        stdout.write(`${printable(text)}\n\n`)
        return
      }
      screen ??= openScreen(stdout)
      screen.draw([printable(text), ...notes.slice(-1)].join('\n'))
    },
    get colour() {
      return hasColours(choice, env, stdout.isTTY)
    },
    choose(colour) {
      choice = colour
    },
    close,
  }
}

/** The option decides, then NO_COLOR, then FORCE_COLOR, then whether the output is a terminal that has colours. */
export function hasColours(
  choice: ColourChoice,
  { NO_COLOR: never = '', FORCE_COLOR: force, TERM: kind }: Readonly<Record<string, string | undefined>>,
  isTerminal: boolean | undefined,
): boolean {
  if (choice !== 'auto') return choice === 'always'
  if (never !== '') return false
  if (force !== undefined) return !['0', 'false'].includes(force)
  return isTerminal === true && kind !== 'dumb'
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
    /\x1b\[\d+m|[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ufff9-\ufffb\u200b]/gu,
    found => (ours.has(found) ? found : [...found].map(escaped).join('')),
  )

const escaped = (character: string): string =>
  /[\x20-\x7e]/.test(character)
    ? character
    : `\\u${(character.codePointAt(0) ?? 0).toString(16).padStart(4, '0')}`

/** The most characters of a message that others have written. */
const mostOfMessage = 2_000

/** Returns a message of others in one line, and not longer than a screen: line feeds in it would look like ours. */
export function oneLine(text: string): string {
  const line = text.slice(0, 2 * mostOfMessage).replace(/[\s\u2028\u2029]+/gu, ' ')
  return line.length > mostOfMessage ? `${line.slice(0, mostOfMessage)}...` : line
}

/** A display that shows the texts of steps safely, and each in one line. */
export function printableProgress(display: Progress): Progress {
  const line = (text: string): string => printable(oneLine(text))
  return {
    step: (title, work) =>
      display.step(line(title), step => work({ ...step, detail: text => step.detail(line(text)) })),
    wait: (title, work) => display.wait(line(title), work),
  }
}

/** Adds a style if the terminal has colours. */
export type Paint = (style: Style, text: string) => string

export const painter =
  (colour: boolean): Paint =>
  (style, text) =>
    colour && text !== '' ? styleText(style, text, { validateStream: false }) : text
