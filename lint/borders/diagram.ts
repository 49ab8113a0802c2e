/** Draws the table of rooms as the diagram of docs/architecture.md. */
import type { Room } from './rooms.ts'

const begin = '<!-- begin: drawn by `npm run generate` from lint/borders/rooms.ts -->'
const end = '<!-- end -->'

const idOf = (room: string): string => room.replaceAll(/\W/gu, '_')

export function diagramOf(rooms: Readonly<Record<string, Room>>): string {
  const boxes = Object.entries(rooms).map(([room, { is }]) => `  ${idOf(room)}["<b>${room}</b><br>${is}"]`)
  const arrows = Object.entries(rooms).flatMap(([room, { uses }]) =>
    uses.map(used => `  ${idOf(room)} --> ${idOf(used)}`),
  )
  return ['```mermaid', 'flowchart TD', ...boxes, ...arrows, '```'].join('\n')
}

/** @throws Error where the document has no place for it. */
export function withDiagram(document: string, rooms: Readonly<Record<string, Room>>): string {
  const from = document.indexOf(begin)
  const to = document.indexOf(end, from)
  if (from < 0 || to < 0) throw new Error(`the document has no "${begin}" with an "${end}" behind it`)
  return `${document.slice(0, from + begin.length)}\n${diagramOf(rooms)}\n${document.slice(to)}`
}
