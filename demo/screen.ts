/** Output of the story: a live region on a terminal, plain lines anywhere else. It knows no logic of pods. */
import { styleText } from 'node:util'
import { type Live, type Output, openLive } from '../src/terminal/live.ts'
import { tableLines } from '../src/terminal/table.ts'
import type { PodRow } from './picture.ts'

export interface Screen {
  lines(...lines: readonly string[]): void
  /** See `openLive`. */
  live(frame: () => readonly string[]): Live
}

export const createScreen = (output: Output): Screen => ({
  lines: (...lines) => output.write(lines.map(line => `${line}\n`).join('')),
  live: frame => openLive(output, frame),
})

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
export function podTable(rows: readonly PodRow[]): string[] {
  const [head = '', ...lines] = tableLines(
    columns.map(([title]) => title),
    rows.map(row => columns.map(([, cell]) => cell(row))),
    { gap: '  ', keepEmpty: true },
  )
  return [
    styled.dim(`  ${head}`),
    ...rows.map((row, index) => {
      const text = `  ${lines[index]}`
      return row.leaving ? styled.dim(text) : styled.kind(row.kind, text)
    }),
  ]
}

/** `1.234 s`. */
export const seconds = (ms: number): string => `${(ms / 1000).toFixed(3)} s`
