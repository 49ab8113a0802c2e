/** Requirements of a 64-bit little-endian ELF file on its system. */
export interface ElfNeeds {
  /** Path of the dynamic loader; absent in static executables and in libraries. */
  readonly interpreter?: string
  /** Sonames of the libraries it is linked to. */
  readonly libraries: readonly string[]
}

const PT_LOAD = 1
const PT_DYNAMIC = 2
const PT_INTERP = 3
const DT_NULL = 0n
const DT_NEEDED = 1n
const DT_STRTAB = 5n

interface Segment {
  readonly type: number
  readonly offset: number
  readonly address: bigint
  readonly size: number
}

/**
 * Parses the parts that the loader reads.
 * @throws for anything other than 64-bit little-endian ELF
 */
export function elfNeeds(file: Uint8Array): ElfNeeds {
  const bytes = Buffer.from(file.buffer, file.byteOffset, file.byteLength)
  if (bytes.length < 64 || bytes.readUInt32BE(0) !== 0x7f454c46 || bytes[4] !== 2 || bytes[5] !== 1) {
    throw new Error('not a 64-bit little-endian ELF file')
  }
  const segments = programHeaders(bytes)
  const interpreter = segments.find(segment => segment.type === PT_INTERP)
  const dynamic = segments.find(segment => segment.type === PT_DYNAMIC)
  return {
    ...(interpreter && { interpreter: textAt(bytes, interpreter.offset) }),
    libraries: dynamic === undefined ? [] : neededLibraries(bytes, segments, dynamic),
  }
}

function programHeaders(bytes: Buffer): Segment[] {
  const start = Number(bytes.readBigUInt64LE(32))
  const entrySize = bytes.readUInt16LE(54)
  const count = bytes.readUInt16LE(56)
  return Array.from({ length: count }, (_, index) => {
    const at = start + index * entrySize
    return {
      type: bytes.readUInt32LE(at),
      offset: Number(bytes.readBigUInt64LE(at + 8)),
      address: bytes.readBigUInt64LE(at + 16),
      size: Number(bytes.readBigUInt64LE(at + 32)),
    }
  })
}

function neededLibraries(bytes: Buffer, segments: readonly Segment[], dynamic: Segment): string[] {
  const tags: { tag: bigint; value: bigint }[] = []
  for (let at = dynamic.offset; at < dynamic.offset + dynamic.size; at += 16) {
    const tag = bytes.readBigInt64LE(at)
    if (tag === DT_NULL) break
    tags.push({ tag, value: bytes.readBigUInt64LE(at + 8) })
  }
  const strings = tags.find(({ tag }) => tag === DT_STRTAB)
  if (strings === undefined) return []
  const table = fileOffset(segments, strings.value)
  return tags.filter(({ tag }) => tag === DT_NEEDED).map(({ value }) => textAt(bytes, table + Number(value)))
}

function fileOffset(segments: readonly Segment[], address: bigint): number {
  const holder = segments.find(
    it => it.type === PT_LOAD && address >= it.address && address < it.address + BigInt(it.size),
  )
  if (holder === undefined) throw new Error('ELF string table lies outside the loaded segments')
  return holder.offset + Number(address - holder.address)
}

function textAt(bytes: Buffer, offset: number): string {
  const end = bytes.indexOf(0, offset)
  return bytes.toString('latin1', offset, end)
}
