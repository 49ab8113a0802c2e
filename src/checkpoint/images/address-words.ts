import { isIPv4, isIPv6 } from 'node:net'

/**
 * An address as CRIU's images have it: 32-bit words as they lie in memory, in network order, read as little-endian. An
 * address of IPv4 has two forms, its own and the one that sockets of IPv6 use for it.
 * @returns none for what is no address.
 */
export function addressWords(address: string): readonly (readonly number[])[] {
  if (isIPv4(address)) {
    const word = wordsOf(address.split('.').map(Number))
    return [word, [0, 0, 0xffff0000, ...word]]
  }
  // One with a zone is of a link, not of a pod.
  return isIPv6(address) && !address.includes('%') ? [wordsOf(bytesOfIPv6(address))] : []
}

function wordsOf(bytes: readonly number[]): number[] {
  const buffer = Buffer.from(bytes)
  return Array.from({ length: bytes.length / 4 }, (_, at) => buffer.readUInt32LE(at * 4))
}

function bytesOfIPv6(address: string): number[] {
  // The parser of URLs writes an embedded address of IPv4 as two groups, too.
  const [head = '', tail] = new URL(`http://[${address}]`).hostname.slice(1, -1).split('::')
  const groups = (text: string) =>
    text === '' ? [] : text.split(':').map(group => Number.parseInt(group, 16))
  const [first, last] = [groups(head), groups(tail ?? '')]
  const all = [...first, ...Array<number>(8 - first.length - last.length).fill(0), ...last]
  return all.flatMap(group => [group >> 8, group & 0xff])
}
