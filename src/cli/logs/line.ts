/** Lines of logs: which are about a set, and how people read them. */
import { oneLine, type Paint } from '../terminal.ts'
import type { LogLine } from './sources.ts'

export type Fields = Readonly<Record<string, unknown>>

/** Returns the fields of a line of our programs; undefined for any other line. */
export function fieldsOf(text: string): Fields | undefined {
  if (!text.startsWith('{')) return undefined
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null ? (value as Fields) : undefined
  } catch {
    return undefined
  }
}

/** True if a line names the set, one of its slots or one of its pods. A line that names nothing is about everything. */
export function isAbout(fields: Fields | undefined, namespace: string, set: string): boolean {
  if (fields === undefined) return true
  const { level, time, msg, ...rest } = fields
  const own = rest['namespace']
  if (typeof own === 'string' && own !== namespace) return false
  const names = ['set', 'slot', 'pod', 'name', 'key', 'object'].flatMap(key => {
    const value = rest[key]
    return typeof value === 'string' ? [value] : []
  })
  if (names.length === 0) return level === 'error' || level === 'fatal'
  const bare = names.map(name => (name.startsWith(`${namespace}/`) ? name.slice(namespace.length + 1) : name))
  return bare.some(name => name === set || (name.startsWith(`${set}-`) && !name.includes('/')))
}

/** Fields that every line has, or that say nothing to people. */
const hidden: ReadonlySet<string> = new Set([
  'level',
  'time',
  'msg',
  'pid',
  'hostname',
  'reconcileID',
  'stack',
])

/** Returns a line as text: time, source, level, message, and the other fields. */
export function rendered({ at, pod, text }: LogLine, paint: Paint): string {
  const fields = fieldsOf(text)
  const time = at.slice(0, 23)
  if (fields === undefined) return `${time} ${pod}  ${oneLine(text)}`
  const level = String(fields['level'] ?? '')
  const style = level === 'error' || level === 'fatal' ? 'red' : level === 'warn' ? 'yellow' : 'dim'
  const more = Object.entries(fields)
    .filter(([key]) => !hidden.has(key))
    .map(([key, value]) => `${key}=${textOf(value)}`)
  return `${time} ${pod}  ${paint(style, level.padEnd(5))} ${oneLine([String(fields['msg'] ?? ''), ...more].join(' '))}`
}

function textOf(value: unknown): string {
  if (typeof value === 'string') return value
  const message = (value as { message?: unknown } | null)?.message
  return typeof message === 'string' ? message : JSON.stringify(value)
}
