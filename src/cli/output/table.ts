import { stripVTControlCharacters } from 'node:util'

const gap = '   '

/** A table as kubectl prints it. Columns that are empty in every row are left out. */
export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const shown = head.map((_, column) => rows.length === 0 || rows.some(row => (row[column] ?? '') !== ''))
  const lines = [head, ...rows].map(row => head.map((_, i) => row[i] ?? '').filter((_, i) => shown[i]))
  const widths = head.filter((_, i) => shown[i]).map((_, i) => Math.max(...lines.map(it => widthOf(it[i]))))
  return lines
    .map(line =>
      line
        .map((cell, i) => cell + ' '.repeat((widths[i] ?? 0) - widthOf(cell)))
        .join(gap)
        .trimEnd(),
    )
    .join('\n')
}

const widthOf = (cell = '') => stripVTControlCharacters(cell).length
