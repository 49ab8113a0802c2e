/**
 * Reads the descriptions of CRIU's messages from CRIU's program. protobuf-c compiles every message and enum of a
 * `.proto` file into structures (`protobuf-c.h`: ProtobufCMessageDescriptor and so on), which strip leaves in place.
 * Only for programs of 64-bit little-endian machines.
 */

export interface FieldDescription {
  /** Such as `sched_nice`. */
  readonly name: string
  readonly number: number
  readonly repeated: boolean
  /** Such as `uint32`; of a message or an enum its name. */
  readonly type: string
  readonly kind: 'scalar' | 'enum' | 'message'
}

export interface Descriptions {
  readonly messages: ReadonlyMap<string, readonly FieldDescription[]>
  /** Names of an enum's values, by number. */
  readonly enums: ReadonlyMap<string, ReadonlyMap<number, string>>
}

const messageMagic = 0x28aaeef9
const enumMagic = 0x114315af
const fieldBytes = 72
const enumValueBytes = 24
const labelRepeated = 2

/** Names of ProtobufCType, by number. */
const types = [
  ...['int32', 'sint32', 'sfixed32', 'int64', 'sint64', 'sfixed64', 'uint32', 'fixed32', 'uint64'],
  ...['fixed64', 'float', 'double', 'bool', 'enum', 'string', 'bytes', 'message'],
]

export function descriptionsIn(program: Buffer): Descriptions {
  const memory = loaded(program)
  const text = (address: number): string => {
    const start = memory.offset(address)
    return memory.bytes.toString('latin1', start, memory.bytes.indexOf(0, start))
  }
  const pointer = (at: number): number => Number(memory.bytes.readBigUInt64LE(at))
  const number = (at: number): number => memory.bytes.readInt32LE(at)
  const each = <T>(count: number, address: number, size: number, read: (at: number) => T): T[] =>
    count === 0
      ? []
      : Array.from({ length: count }, (_, index) => read(memory.offset(address) + index * size))

  const field = (at: number): FieldDescription => {
    const type = types[number(at + 16)] ?? 'unknown'
    const kind = type === 'enum' || type === 'message' ? type : 'scalar'
    return {
      name: text(pointer(at)),
      number: number(at + 8),
      repeated: number(at + 12) === labelRepeated,
      type: kind === 'scalar' ? type : text(pointer(memory.offset(pointer(at + 32)) + 8)),
      kind,
    }
  }
  return {
    messages: new Map(
      memory
        .places(messageMagic)
        .map(at => [text(pointer(at + 8)), each(number(at + 48), pointer(at + 56), fieldBytes, field)]),
    ),
    enums: new Map(
      memory
        .places(enumMagic)
        .map(at => [
          text(pointer(at + 8)),
          new Map(
            each(number(at + 40), pointer(at + 48), enumValueBytes, value => [
              number(value + 16),
              text(pointer(value)),
            ]),
          ),
        ]),
    ),
  }
}

const PT_LOAD = 1
const PT_DYNAMIC = 2
const DT_RELA = 7
const DT_RELASZ = 8
const relaBytes = 24
/** R_X86_64_RELATIVE and R_AARCH64_RELATIVE. */
const relative = [8, 1027]

interface Memory {
  /** The program's file, with its pointers filled in as the loader does. */
  readonly bytes: Buffer
  /** Place in `bytes`. @throws if the file has no bytes for the address. */
  readonly offset: (address: number) => number
  /** Aligned places in loaded segments with this 32-bit number. */
  readonly places: (word: number) => number[]
}

function loaded(program: Buffer): Memory {
  const bytes = Buffer.from(program)
  const long = (at: number): number => Number(bytes.readBigUInt64LE(at))
  const segments = Array.from({ length: bytes.readUInt16LE(56) }, (_, index) => {
    const at = long(32) + index * bytes.readUInt16LE(54)
    return { type: bytes.readUInt32LE(at), start: long(at + 8), address: long(at + 16), size: long(at + 32) }
  })
  const loads = segments.filter(({ type }) => type === PT_LOAD)
  const offset = (address: number): number => {
    const holder = loads.find(it => address >= it.address && address < it.address + it.size)
    if (holder === undefined) throw new Error(`no part of the file is loaded at ${address}`)
    return address - holder.address + holder.start
  }
  const dynamic = new Map<number, number>()
  for (const { type, start, size } of segments)
    if (type === PT_DYNAMIC)
      for (let at = start; at < start + size; at += 16) dynamic.set(long(at), long(at + 8))
  const table = offset(dynamic.get(DT_RELA) ?? 0)
  for (let at = table; at < table + (dynamic.get(DT_RELASZ) ?? 0); at += relaBytes)
    if (relative.includes(bytes.readUInt32LE(at + 8)))
      bytes.writeBigUInt64LE(bytes.readBigUInt64LE(at + 16), offset(long(at)))
  return {
    bytes,
    offset,
    places: word =>
      loads.flatMap(({ start, size }) => {
        const found: number[] = []
        for (let at = Math.ceil(start / 8) * 8; at + 8 <= start + size; at += 8)
          if (bytes.readUInt32LE(at) === word) found.push(at)
        return found
      }),
  }
}
