/** Output of the story: a live region on a terminal, plain lines anywhere else. It knows no logic of pods. */
import { stripVTControlCharacters, styleText } from 'node:util'
import type { PodRow } from './picture.ts'

export interface Output {
  readonly isTTY?: boolean | undefined
  readonly columns?: number | undefined
  write(text: string): unknown
}

/** A changing region below the permanent lines. */
export interface Live extends Disposable {
  /** Prints a permanent line above the region. */
  log(line: string): void
}

export interface Screen {
  lines(...lines: readonly string[]): void
  /**
   * Redraws `frame()` until disposed; the last frame stays. If the output is not a terminal, prints only the last
   * frame.
   */
  live(frame: () => readonly string[]): Live
}

const frameMs = 100

export function createScreen(output: Output): Screen {
  const join = (lines: readonly string[]) => lines.map(line => `${line}\n`).join('')
  return {
    lines: (...lines) => output.write(join(lines)),
    live(frame) {
      if (output.isTTY !== true)
        return {
          log: line => output.write(join([line])),
          [Symbol.dispose]: () => output.write(join(frame())),
        }
      let shown = 0
      const draw = (above: readonly string[] = []) => {
        // A line that wraps would take two rows, and the next frame would begin in the wrong row.
        const lines = frame().map(line => cut(line, output.columns ?? 80))
        const up = shown > 0 ? `\u001b[${shown}A` : ''
        // One write, so that the terminal never shows half a frame.
        output.write(`${up}\r\u001b[J${join([...above, ...lines])}`)
        shown = lines.length
      }
      const timer = setInterval(draw, frameMs)
      draw()
      return {
        log: line => draw([line]),
        [Symbol.dispose]: () => {
          clearInterval(timer)
          draw()
        },
      }
    },
  }
}

const kindStyle = { primary: 'green', hotbackup: 'yellow', coldbackup: 'blue' } as const

export const styled = {
  title: (text: string) => styleText('bold', text),
  command: (text: string) => styleText('cyan', `$ ${text}`),
  dim: (text: string) => styleText('dim', text),
  good: (text: string) => styleText('green', text),
  bad: (text: string) => styleText(['bold', 'red'], text),
  kind: (kind: PodRow['kind'], text: string = kind) => styleText(kindStyle[kind], text),
}

const columns = [
  ['NAME', (row: PodRow) => row.name],
  ['TYPE', (row: PodRow) => row.kind],
  ['SLOT', (row: PodRow) => row.slot],
  ['NODE', (row: PodRow) => row.node],
  ['READY', (row: PodRow) => row.ready],
  ['STATUS', (row: PodRow) => row.status],
  ['RESTARTS', (row: PodRow) => String(row.restarts)],
] as const

/** Renders the pods as a table, coloured by kind; pods that are being deleted are dim. */
export function table(rows: readonly PodRow[]): string[] {
  const widths = columns.map(([title, cell]) => Math.max(title.length, ...rows.map(row => cell(row).length)))
  const line = (cells: readonly string[]) =>
    cells
      .map((cell, i) => cell.padEnd(widths[i] ?? 0))
      .join('  ')
      .trimEnd()
  return [
    styled.dim(`  ${line(columns.map(([title]) => title))}`),
    ...rows.map(row => {
      const text = `  ${line(columns.map(([, cell]) => cell(row)))}`
      return row.leaving ? styled.dim(text) : styled.kind(row.kind, text)
    }),
  ]
}

/** `1.234 s`. */
export const seconds = (ms: number): string => `${(ms / 1000).toFixed(3)} s`

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
