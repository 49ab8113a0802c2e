import { stripVTControlCharacters } from 'node:util'

export interface TableStyle {
  /** Between two columns. Default: three spaces, as kubectl has them. */
  readonly gap?: string
  /** Columns whose cells are aligned to the right. */
  readonly right?: ReadonlySet<number>
  /** Keep columns that are empty in every row. */
  readonly keepEmpty?: boolean
  /** A line of dashes below the titles. */
  readonly rule?: boolean
}

/** A table as kubectl prints it. Columns that are empty in every row are left out. */
export const table = (...of: Parameters<typeof tableLines>): string => tableLines(...of).join('\n')

/** The lines of a table: its titles, the rule if there is one, and one for each row. Colours take no room. */
export function tableLines(
  titles: readonly string[],
  rows: readonly (readonly string[])[],
  { gap = '   ', right = new Set(), keepEmpty = false, rule = false }: TableStyle = {},
): string[] {
  const columns = titles
    .map((title, column) => ({
      title,
      cells: rows.map(row => inOneLine(row[column] ?? '')),
      right: right.has(column),
    }))
    .filter(({ cells }) => keepEmpty || cells.length === 0 || cells.some(cell => cell !== ''))
    .map(column => ({ ...column, width: Math.max(...[column.title, ...column.cells].map(widthOf)) }))
  const line = (cellOf: (column: (typeof columns)[number]) => string): string =>
    columns
      .map(column => {
        const cell = cellOf(column)
        const room = ' '.repeat(column.width - widthOf(cell))
        return column.right ? room + cell : cell + room
      })
      .join(gap)
      .trimEnd()
  return [
    line(({ title }) => title),
    ...(rule ? [line(({ width }) => '-'.repeat(width))] : []),
    ...rows.map((_, index) => line(({ cells }) => cells[index] ?? '')),
  ]
}

/** A line feed in a cell would look like another row. */
const inOneLine = (cell: string): string => cell.replace(/\s*[\r\n]+\s*/g, ' ')

const widthOf = (cell: string): number => stripVTControlCharacters(cell).length
