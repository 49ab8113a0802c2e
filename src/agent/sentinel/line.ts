/**
 * Lines of the sentinel's protocol: `<id> <word> key=value ...`. Values are percent-encoded bytes of UTF-8; keys may
 * repeat and keep their order; events have the id `-`.
 */

/** Longest line either side accepts, newline included. */
export const longestLine = 64 * 1024

export interface Line {
  /** undefined: an event. */
  readonly id: number | undefined
  readonly word: string
  readonly fields: readonly Field[]
}

export type Field = readonly [key: string, value: string]

/**
 * Encodes a line, newline included.
 *
 * @throws RangeError if it is longer than the other side accepts, or if a word or key is not an identifier: both are
 * mistakes of the caller.
 */
export function encodeLine(id: number, word: string, fields: readonly Field[]): string {
  for (const name of [word, ...fields.map(([key]) => key)])
    if (!identifier.test(name)) throw new RangeError(`not a word of the protocol: ${JSON.stringify(name)}`)
  const words = [String(id), word, ...fields.map(([key, value]) => `${key}=${encodeValue(value)}`)]
  const line = `${words.join(' ')}\n`
  if (line.length > longestLine)
    throw new RangeError(`a line of ${line.length} bytes, more than ${longestLine}`)
  return line
}

/** Parses a line without its newline; undefined: not a line of the protocol. */
export function parseLine(text: string): Line | undefined {
  const [id, word, ...rest] = text.split(' ')
  if (id === undefined || word === undefined || !identifier.test(word)) return undefined
  if (id !== '-' && !/^(0|[1-9]\d{0,14})$/.test(id)) return undefined
  const fields: Field[] = []
  for (const item of rest) {
    const at = item.indexOf('=')
    const key = item.slice(0, Math.max(at, 0))
    const value = decodeValue(item.slice(at + 1))
    if (!identifier.test(key) || value === undefined) return undefined
    fields.push([key, value])
  }
  return { id: id === '-' ? undefined : Number(id), word, fields }
}

/** Returns the first value with that key. */
export function field(line: Line, key: string): string | undefined {
  return line.fields.find(it => it[0] === key)?.[1]
}

const identifier = /^[A-Za-z][A-Za-z0-9_-]*$/

/** Encodes all bytes that cannot be part of a path or number: the other side need not know the rules of URLs. */
function encodeValue(value: string): string {
  return [...Buffer.from(value, 'utf8')]
    .map(byte => {
      const character = String.fromCharCode(byte)
      return /[A-Za-z0-9._\-/:@,+=[\]]/.test(character)
        ? character
        : `%${byte.toString(16).toUpperCase().padStart(2, '0')}`
    })
    .join('')
}

function decodeValue(text: string): string | undefined {
  if (!text.includes('%')) return text
  try {
    return decodeURIComponent(text)
  } catch {
    // A lone % or bytes that are not UTF-8: the line is malformed, and the caller says so.
    return undefined
  }
}
