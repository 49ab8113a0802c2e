import { isIPv4, isIPv6 } from 'node:net'

/**
 * Returns the forms of an address in CRIU's images: 32-bit words as they lie in memory, in network order, read as
 * little-endian. An IPv4 address has two forms, its own and the IPv4-mapped one of IPv6 sockets.
 * @returns an empty list for anything that is not an address.
 */
export function addressWords(address: string): readonly (readonly number[])[] {
  if (isIPv4(address)) {
    const word = wordsOf(address.split('.').map(Number))
    return [word, [0, 0, 0xffff0000, ...word]]
  }
  // An address with a zone belongs to a link, not to a pod.
  return isIPv6(address) && !address.includes('%') ? [wordsOf(bytesOfIPv6(address))] : []
}

function wordsOf(bytes: readonly number[]): number[] {
  const buffer = Buffer.from(bytes)
  return Array.from({ length: bytes.length / 4 }, (_, at) => buffer.readUInt32LE(at * 4))
}

function bytesOfIPv6(address: string): number[] {
  // The URL parser also writes an embedded IPv4 address as two groups.
  const [head = '', tail] = new URL(`http://[${address}]`).hostname.slice(1, -1).split('::')
  const groups = (text: string) =>
    text === '' ? [] : text.split(':').map(group => Number.parseInt(group, 16))
  const [first, last] = [groups(head), groups(tail ?? '')]
  const all = [...first, ...Array<number>(8 - first.length - last.length).fill(0), ...last]
  return all.flatMap(group => [group >> 8, group & 0xff])
}

interface Move {
  readonly words: readonly number[]
  readonly target: readonly number[]
}

/** Returns for each form of an address the same form of another one. A socket cannot be bound across address families. */
export const movesOf = (from: string, to: string): readonly Move[] =>
  addressWords(from).flatMap(words => {
    const target = addressWords(to).find(it => it.length === words.length)
    return target === undefined ? [] : [{ words, target }]
  })

/** Returns the words to which these move; undefined: they stay. */
export const movedWords = (moves: readonly Move[], words: readonly number[]): readonly number[] | undefined =>
  moves.find(move => move.words.length === words.length && move.words.every((word, at) => word === words[at]))
    ?.target

/** Returns the address of such words, as it is written; undefined: they are none. */
export function addressOfWords(words: readonly number[]): string | undefined {
  const bytes = Buffer.alloc(words.length * 4)
  for (const [at, word] of words.entries()) bytes.writeUInt32LE(word >>> 0, at * 4)
  if (words.length === 1) return [...bytes].join('.')
  if (words.length !== 4) return undefined
  return Array.from({ length: 8 }, (_, at) => bytes.readUInt16BE(at * 2).toString(16)).join(':')
}
