/** Positions of the members of a tar archive: enough to find them again in another archive. */
import type { WindowReader } from './window-reader.ts'

export interface TarMember {
  /** From the start of the archive to the member's header, bytes. */
  readonly offset: number
  /** Header and content with padding, bytes. */
  readonly length: number
}

const block = 512

/**
 * Returns the members of file `index` of a reader's generation, by a name that identifies the same member in a similar
 * archive. The list ends at the first header that cannot be read: the members after it are then not found again.
 */
export async function tarMembers(
  reader: WindowReader,
  index: number,
  size: number,
): Promise<ReadonlyMap<string, TarMember>> {
  const members = new Map<string, TarMember>()
  const seen = new Map<string, number>()
  for (let offset = 0; offset + block <= size; ) {
    const header = reader.peek(index, offset, block) ?? (await reader.read(index, offset, block))
    const content = contentSize(header)
    if (content === undefined) break
    const length = block + Math.ceil(content / block) * block
    if (offset + length > size) break
    // Kind, name and prefix. Extended headers all have the same name, so their order tells them apart.
    const name = `${header.toString('latin1', 156, 157)}${text(header, 345, 500)}/${text(header, 0, 100)}`
    const nth = seen.get(name) ?? 0
    seen.set(name, nth + 1)
    members.set(`${nth}:${name}`, { offset, length })
    offset += length
  }
  return members
}

function text(header: Buffer, start: number, end: number): string {
  const zero = header.indexOf(0, start)
  return header.toString('latin1', start, zero === -1 || zero > end ? end : zero)
}

/** Returns undefined if this is not the header of a member. */
function contentSize(header: Buffer): number | undefined {
  if (header.toString('latin1', 257, 262) !== 'ustar') return undefined
  const first = header.readUInt8(124)
  // Sizes of 8 GiB and more are binary, marked by the highest bit.
  if (first === 0x80) return header.readUIntBE(130, 6)
  const octal = text(header, 124, 136).trim()
  return /^[0-7]{1,12}$/.test(octal) ? Number.parseInt(octal, 8) : undefined
}
